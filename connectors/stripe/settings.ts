import { z } from 'zod';
import { secretFile } from '../kit';
import { STRIPE_CURRENCIES } from './methods';

export const settings = {
  STRIPE_SECRET_KEY_FILE: secretFile.meta({
    description: 'File with the secret key, or a restricted one',
  }),
  // An empty or short secret would let anyone sign.
  STRIPE_WEBHOOK_SECRET_FILE: secretFile
    .refine((text) => /^whsec_\w{16,}(\s+whsec_\w{16,})*$/.test(text), 'must have whsec_…')
    .meta({
      description:
        'File with the webhook’s signing secret, while it is rolled with both, one a line',
    }),
  STRIPE_CURRENCIES: z
    .string()
    .default('EUR')
    .transform((text) => text.split('|'))
    .refine(
      (codes) => codes.every((code) => STRIPE_CURRENCIES.includes(code)),
      `takes ${STRIPE_CURRENCIES.join(', ')}`,
    )
    .meta({ description: 'Currencies in which the Stripe account settles, as `EUR|PLN`' }),
  STRIPE_API_URL: z
    .url()
    .default('https://api.stripe.com')
    .transform((url) => url.replace(/\/+$/, ''))
    .meta({ description: 'Address of the API' }),
};
export type StripeSettings = typeof settings;

/**
 * Requires a key of the environment, since the other mode is another account.
 * @throws Error for a key of the other mode, or none
 */
export function assertKeyMode(key: string, environment: 'live' | 'sandbox'): void {
  const mode = environment === 'live' ? 'live' : 'test';
  if (new RegExp(`^(sk|rk)_${mode}_`).test(key)) return;
  throw new Error(
    `STRIPE_SECRET_KEY_FILE: the connector serves ${environment}, and needs a key sk_${mode}_… or rk_${mode}_….`,
  );
}
