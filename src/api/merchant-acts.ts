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

interface Asked {
  account_id: string;
  livemode: boolean;
  /** Idempotency key. */
  key: string;
  requestId: string;
}

/**
 * Facts of a creating request as the door of the API finds them out, after its checks.
 * @throws Refusal `account_frozen`
 */
async function requestOf(
  deps: ApiDeps,
  { operation, success: { status } }: typeof createRefund | typeof createCryptoSettlement,
  { account_id, livemode, key, requestId }: Asked,
  wish: object,
) {
  await checkFrozen(deps, { account_id, livemode });
  const { canonical } = parseJson(JSON.stringify(wish));
  return { claimKey: { account_id, livemode, operation, key }, canonical, requestId, status };
}

/** Acts of a merchant's staff by the door of the API: its checks, claims and workflows. */
export function createMerchantActs(deps: ApiDeps): MerchantActs {
  const refunds = refundHandlers(deps);
  const settlements = settlementHandlers(deps);
  return {
    refund: async ({ payment_id, amount, reason, ...asked }) => {
      const wish = defined({ payment_id, amount, reason });
      const request = await requestOf(deps, createRefund, asked, wish);
      const body = () => validate(CreateRefund, wish);
      const made = await makeOnce(deps, { ...request, handlers: refunds, body });
      return Refund.parse(JSON.parse(made.body)).id;
    },
    settle: async ({ asset, network, ...asked }) => {
      const wish = { asset, network };
      const request = await requestOf(deps, createCryptoSettlement, asked, wish);
      const body = () => validate(CreateCryptoSettlement, wish);
      const made = await makeOnce(deps, { ...request, handlers: settlements, body });
      return CryptoSettlement.parse(JSON.parse(made.body)).id;
    },
    cancel: async ({ account_id, livemode, payment_id }) => {
      await checkFrozen(deps, { account_id, livemode });
      await cancel(deps, payment_id, { account_id, livemode });
    },
  };
}
