import type { MerchantActs } from '../dashboard/deps';
import { defined } from '../domain/defined';
import {
  CreateCryptoSettlement,
  CryptoSettlement,
  createCryptoSettlement,
} from '../domain/wire/crypto';
import { CreateRefund, createRefund, Refund } from '../domain/wire/refunds';
import { parseJson } from '../json';
import { checkFrozen } from './authenticate';
import type { ApiDeps } from './context';
import { settlementHandlers } from './crypto';
import { makeOnce } from './make-once';
import { cancel } from './payments';
import { refundHandlers } from './refunds';
import { validate } from './validate';

/** Acts of a merchant's staff by the door of the API: its checks, claims and workflows. */
export function createMerchantActs(deps: ApiDeps): MerchantActs {
  const refunds = refundHandlers(deps);
  const settlements = settlementHandlers(deps);
  return {
    refund: async ({ account_id, livemode, key, requestId, payment_id, amount, reason }) => {
      await checkFrozen(deps, { account_id, livemode });
      const wish = defined({ payment_id, amount, reason });
      const made = await makeOnce(deps, {
        claimKey: { account_id, livemode, operation: createRefund.operation, key },
        canonical: parseJson(JSON.stringify(wish)).canonical,
        requestId,
        handlers: refunds,
        body: () => validate(CreateRefund, wish),
        status: createRefund.success.status,
      });
      return Refund.parse(JSON.parse(made.body)).id;
    },
    settle: async ({ account_id, livemode, key, requestId, asset, network }) => {
      const wish = { asset, network };
      const made = await makeOnce(deps, {
        claimKey: { account_id, livemode, operation: createCryptoSettlement.operation, key },
        canonical: parseJson(JSON.stringify(wish)).canonical,
        requestId,
        handlers: settlements,
        body: () => validate(CreateCryptoSettlement, wish),
        status: createCryptoSettlement.success.status,
      });
      return CryptoSettlement.parse(JSON.parse(made.body)).id;
    },
    cancel: async ({ account_id, livemode, payment_id }) => {
      await checkFrozen(deps, { account_id, livemode });
      await cancel(deps, payment_id, { account_id, livemode });
    },
  };
}
