import type { ErrorDetail } from '../errors';
import { isPaymentMethodId, methodRules } from './catalog';

export interface MethodRequest {
  method: string;
  currency: string;
  country?: string | null | undefined;
  email?: string | null | undefined;
}

/**
 * Details of `method_requirements_not_met`: every violated rule.
 * @see docs/api.md#create-a-payment, docs/api.md#errors
 */
export function checkMethodRequirements(
  request: MethodRequest,
  enabled: ReadonlySet<string>,
): ErrorDetail[] {
  const { method, currency, country, email } = request;
  if (!isPaymentMethodId(method)) {
    return [{ code: 'method_not_found', field: 'method', message: 'There is no such method.' }];
  }
  const rules = methodRules(method);
  const name = rules.display_name;
  const details: ErrorDetail[] = [];
  const refuse = (code: string, field: string, message: string) =>
    details.push({ code, field, message });

  if (!enabled.has(method)) {
    refuse('method_not_enabled', 'method', `${name} is not enabled on this account.`);
  }
  if (!rules.currencies.includes(currency)) {
    const message = `${name} accepts only ${rules.currencies.join(', ')}.`;
    refuse('currency_not_supported', 'currency', message);
  }
  if (country == null || country === '') {
    if (rules.required_fields.includes('country')) {
      refuse('country_required', 'country', `${name} requires a country.`);
    }
  } else if (!rules.countries.includes(country)) {
    const message = `${name} is available only in ${rules.countries.join(', ')}.`;
    refuse('country_not_supported', 'country', message);
  }
  if (!email && rules.required_fields.includes('customer.email')) {
    refuse('email_required', 'customer.email', `${name} requires the customer's e-mail address.`);
  }
  return details;
}
