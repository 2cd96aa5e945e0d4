import type { PaymentMethodId } from './domain/catalogue';
import { isPaymentMethodId, PAYMENT_METHOD_IDS } from './domain/catalogue';

/** The sandbox bank's name: it polls `connector-sandbox`. */
export const SANDBOX_CONNECTOR = 'sandbox';

/** Which connector serves which method, by environment. */
export interface Connectors {
  /** Undefined when no connector serves the method there. */
  serving(method: string, livemode: boolean): string | undefined;
  /** The name of the sandbox bank's connector. */
  sandbox: string;
}

/**
 * The sandbox bank serves every method in the sandbox and none live.
 * @param live `name=method|method,name=method`: the live connectors of this installation
 * @throws Error naming a method that the catalogue does not have
 */
export function createConnectors(sandbox: string, live = ''): Connectors {
  const liveBy = new Map<string, string>();
  for (const entry of live.split(',').filter((text) => text.trim() !== '')) {
    const [name = '', methods = ''] = entry.split('=', 2).map((text) => text.trim());
    for (const method of methods.split('|')) {
      if (!isPaymentMethodId(method)) {
        throw new Error(`LIVE_CONNECTORS: ${name} names no method of the catalogue: "${method}".`);
      }
      liveBy.set(method, name);
    }
  }
  const sandboxBy = new Map<string, string>(PAYMENT_METHOD_IDS.map((id) => [id, sandbox]));
  return {
    serving: (method, livemode) => (livemode ? liveBy : sandboxBy).get(method),
    sandbox,
  };
}

/** What the account has enabled *and* a connector serves. Decided: "Catalogue". */
export function availableMethods(
  connectors: Connectors,
  enabled: readonly string[],
  livemode: boolean,
): PaymentMethodId[] {
  return PAYMENT_METHOD_IDS.filter(
    (id) => enabled.includes(id) && connectors.serving(id, livemode) !== undefined,
  );
}
