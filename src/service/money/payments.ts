import { Refusal, unavailable } from '../../domain/errors';
import {
  isPaymentMethodId,
  methodRules,
  type PaymentMethodId,
  settlesSoon,
} from '../../domain/payment/catalog';
import { isCancellable } from '../../domain/payment/payment';
import { checkMethodRequirements } from '../../domain/payment/rules';
import * as wire from '../../domain/wire/payments';
import { derivePayTokenHash } from '../../encryption/pay-token';
import { availableMethods } from '../../routing';
import type { CryptoPaymentDocument } from '../../store/crypto-payments';
import type { PaymentDocument } from '../../store/payments';
import { type MerchantDeps, type Owner, refuseFrozen } from '../access';
import { listHeld } from '../banks/movements';
import { readRouting } from '../banks/routing/read';
import {
  type CreatedResource,
  type CreateRequest,
  createOnce,
  type Reservation,
  readMetadataText,
} from '../create-once';
import { presentBrand, readLogoType, type ShownBrand } from '../merchants/brand/brand';
import { accountNow } from '../merchants/clock';
import { presentPayment, withOpening } from './present';
import { createGet, createList, findCreated } from './read';

/**
 * @throws Refusal 422; 503 `temporarily_unavailable`: outcome unknown
 * @see docs/api.md#create-a-payment
 */
export function createPayment(deps: MerchantDeps, request: CreateRequest<wire.CreatePayment>) {
  return createOnce(deps, request, {
    operation: wire.createPayment.operation,
    accept: async (body, id) => {
      const { account_id, livemode } = request.caller;
      const account = await deps.stores.accounts.getCached(account_id);
      const findConnector = await readRouting(deps, { account_id, livemode });
      const { method, amount, currency, country, customer } = body;
      const enabled = new Set<string>(
        availableMethods(findConnector, account?.enabled_methods ?? []),
      );
      const connector = findConnector(method, currency);
      if (connector === undefined) enabled.delete(method);
      const details = checkMethodRequirements(
        { method, currency, country, email: customer?.email },
        enabled,
      );
      if (details.length > 0 || connector === undefined || !isPaymentMethodId(method)) {
        const message = 'The request does not meet the requirements of the payment method.';
        throw new Refusal('method_requirements_not_met', message, { details });
      }
      const { expires_in_seconds, settlement_due_seconds } = methodRules(method);
      const { reference = null, metadata, success_url, error_url } = body;
      const { email = null, first_name = null, last_name = null } = customer ?? {};
      const payer = await deps.payers.encrypt({ account_id, livemode }, id, {
        email,
        first_name,
        last_name,
        reference: customer?.reference ?? null,
      });
      return {
        stored: {
          reference,
          customer: payer,
          success_url,
          error_url,
          metadata: readMetadataText(metadata),
        },
        routing: {
          account_id,
          livemode,
          amount,
          currency,
          method,
          connector,
          country: country ?? null,
          expires_in_seconds,
          settlement_due_seconds,
          ...(settlesSoon(method) ? { settles_soon: true } : {}),
        },
      };
    },
    open: (reservation) => openPayment(deps, request, reservation),
  });
}

/** @throws Refusal 404 */
export const getPayment = createGet('payment', ({ payments }) => payments);

export function findPayment(
  { stores }: Pick<MerchantDeps, 'stores'>,
  { account_id, livemode }: Owner,
  id: string,
): Promise<PaymentDocument | null> {
  return stores.payments.find(id, account_id, livemode);
}
export const listPayments = createList(({ payments }) => payments);

export async function listAvailableMethods(
  deps: Pick<MerchantDeps, 'stores' | 'connectors'>,
  { account_id, livemode }: Owner,
): Promise<PaymentMethodId[]> {
  const account = await deps.stores.accounts.get(account_id);
  const findConnector = await readRouting(deps, { account_id, livemode });
  return availableMethods(findConnector, account?.enabled_methods ?? []);
}

/**
 * A repeat changes nothing.
 * @throws Refusal 403 `account_frozen`; 404; 422 `cannot_cancel`; 503 `temporarily_unavailable`:
 * outcome unknown
 */
export async function cancelPayment(
  deps: Pick<MerchantDeps, 'stores' | 'temporal'>,
  caller: Owner,
  id: string,
): Promise<PaymentDocument> {
  refuseFrozen(await deps.stores.accounts.getCached(caller.account_id));
  const payment = await getPayment(deps, caller, id);
  if (payment.status === 'cancelled') return payment;
  await deps.temporal.cancelPayment(payment, 'merchant');
  const current = await getPayment(deps, caller, id);
  if (current.status === 'cancelled') return current;
  const isHeld = (await listHeld(deps, id)).length > 0;
  if (isCancellable(current.status) && !isHeld) {
    const cause = new Error('No workflow runs for a payment that is in flight.');
    throw unavailable('The payment could not be reached.', cause);
  }
  const { status } = current;
  const isPaid = status === 'authorized' || status === 'settled';
  const message = isCancellable(status)
    ? 'Money has come for the payment, and is being looked into; it cannot be cancelled now.'
    : `The payment is ${status}; it can no longer be cancelled.${isPaid ? ' Refund it instead.' : ''}`;
  throw new Refusal('cannot_cancel', message);
}

async function openPayment(
  deps: MerchantDeps,
  { caller, requestId: request_id }: CreateRequest<unknown>,
  { record, hashes }: Reservation,
): Promise<CreatedResource> {
  const { resource_id: payment_id, request } = record;
  if (request === null || !('stored' in request)) {
    return await readCreated(deps, caller, record);
  }
  const return_url = `${deps.config.PUBLIC_URL}/pay/return/${payment_id}`;
  const { routing, stored } = request;
  const openResult = await deps.temporal.openPayment(
    { ...routing, payment_id, return_url, request_id },
    hashes,
  );
  if (openResult?.opening === undefined) {
    const written = await deps.stores.idempotency.forResource(payment_id);
    return await readCreated(deps, caller, { ...record, opening: written?.opening });
  }
  const payment = { _id: payment_id, ...routing, ...stored };
  const answer = await presentPayment(deps, withOpening(payment, openResult.opening));
  return { answer, isStored: true };
}

async function readCreated(
  deps: MerchantDeps,
  caller: Owner,
  { resource_id, opening }: Pick<Reservation['record'], 'resource_id' | 'opening'>,
): Promise<CreatedResource> {
  const payment = await findCreated(deps.stores.payments, 'payment', caller, resource_id);
  if (opening === undefined) {
    return { answer: await presentPayment(deps, payment), isPersonal: true };
  }
  return { answer: await presentPayment(deps, withOpening(payment, opening)), isStored: true };
}

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
