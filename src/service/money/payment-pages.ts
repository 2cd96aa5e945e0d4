import { derivePayTokenHash } from '../../encryption/pay-token';
import type { CryptoPaymentDocument } from '../../store/crypto-payments';
import type { PaymentDocument } from '../../store/payments';
import type { MerchantDeps, Owner } from '../deps';
import { presentBrand, readLogoType, type ShownBrand } from '../merchants/brand/brand';
import { accountNow } from '../merchants/clock';

export type { PaymentDocument, ShownBrand };

export type PaymentPages = ReturnType<typeof createPaymentPages>;

export function createPaymentPages({
  stores,
  keys,
  temporal,
  now,
}: Pick<MerchantDeps, 'stores' | 'keys' | 'temporal' | 'now'>) {
  const { payments, crypto_payments, accounts, logos } = stores;
  // Links derived from a replaced key are invalid.
  const checkToken = <P extends { _id: string; token_hash: string }>(payment: P | null) =>
    payment?.token_hash === derivePayTokenHash(keys.pay_token, payment?._id ?? '') ? payment : null;
  return {
    payments: {
      get: (id: string): Promise<PaymentDocument | null> => payments.get(id),
      byToken: async (tokenHash: string): Promise<PaymentDocument | null> =>
        checkToken(await payments.byToken(tokenHash)),
      openPage: payments.openPage,
    },
    cryptoPayments: {
      byToken: async (tokenHash: string): Promise<CryptoPaymentDocument | null> =>
        checkToken(await crypto_payments.byToken(tokenHash)),
    },
    /** The sandbox has a clock. */
    getNow: (owner: Owner): Promise<Date> => accountNow({ stores, now }, owner),
    getBrand: async ({ account_id, livemode }: Owner): Promise<ShownBrand> =>
      presentBrand(await accounts.getCached(account_id), livemode),
    readLogo: async (hash: string) => {
      const image = await logos.read(hash);
      const type = image === null ? undefined : readLogoType(image);
      return image === null || type === undefined ? null : { image, type };
    },
    cancelPayment: async (payment: PaymentDocument): Promise<'cancelled' | 'cannot_cancel'> => {
      await temporal.cancelPayment(payment, 'customer');
      const { status } = (await payments.get(payment._id)) ?? payment;
      return status === 'cancelled' ? 'cancelled' : 'cannot_cancel';
    },
  };
}
