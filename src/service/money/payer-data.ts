import { abandon, inTransaction } from '../../base/mongo';
import type { Customer } from '../../domain/creation';
import { toEnv } from '../../domain/environment';
import { isInFlight } from '../../domain/resources';
import { DecryptionError, type Encrypter } from '../../encryption/encrypter';
import type { PaymentDocument } from '../../store/payments';
import type { RefundDocument } from '../../store/refunds';
import type { Owner, WriteDeps } from '../access';
import { listHeld } from '../banks/movements';
import { decryptAnswer } from '../create-once';
import { findAccount } from '../merchants/accounts';
import { listDeposits } from '../operators/resource';
import { createPayerCipher, readPayers, type StoredPayer } from './payers';

type FindDeps = Pick<WriteDeps, 'stores'> & { encrypter: Encrypter };

/** The case of an e-mail address does not matter. */
export interface PayerName extends Owner {
  by: 'reference' | 'email';
  value: string;
}

interface FoundPayer {
  /** Keyed by payment: one that was written meanwhile is read twice. */
  payers: Map<string, StoredPayer & { names: Customer }>;
  /** Payments whose payer no key decrypts: it may be this one. */
  unreadable: string[];
}

async function findPayer(deps: FindDeps, { by, value, ...owner }: PayerName): Promise<FoundPayer> {
  const { stores, encrypter } = deps;
  const { payer_keys } = await findAccount(stores, owner.account_id);
  const keys = payer_keys?.[toEnv(owner.livemode)];
  const cipher = createPayerCipher(encrypter);
  const result: FoundPayer = { payers: new Map(), unreadable: [] };
  for await (const batch of readPayers(stores, owner)) {
    for (const payer of batch) {
      const { reference } = payer.customer;
      if (by === 'reference' && reference !== value) continue;
      const names = await cipher.read(payer, keys).catch((error: unknown) => {
        if (!(error instanceof DecryptionError)) throw error;
        return { email: null, first_name: null, last_name: null, reference, isUnreadable: true };
      });
      if ('isUnreadable' in names) result.unreadable.push(payer._id);
      if (by === 'email' && names.email?.toLowerCase() !== value.toLowerCase()) continue;
      const { email, first_name, last_name } = names;
      result.payers.set(payer._id, {
        ...payer,
        names: { email, first_name, last_name, reference },
      });
    }
  }
  return result;
}

/**
 * @throws ServiceError `account_not_found`
 * @see docs/operations.md#personal-data
 */
export async function exportPayer(deps: FindDeps & Pick<WriteDeps, 'now'>, name: PayerName) {
  const { stores, now } = deps;
  const { by, value: reference, ...owner } = name;
  const { payers, unreadable } = await findPayer(deps, name);
  const payments = [];
  for (const payer of payers.values()) payments.push(await exportPayment(deps, payer));
  const crypto_payments =
    by === 'reference'
      ? await stores.crypto_payments.export({ ...owner, reference }).toArray()
      : [];
  return {
    account_id: owner.account_id,
    environment: toEnv(owner.livemode),
    exported_at: now().toISOString(),
    payments,
    crypto_payments: await Promise.all(
      crypto_payments.map(async ({ token_hash: _token, ...payment }) => ({
        ...payment,
        deposits: await listDeposits(stores, payment),
      })),
    ),
    unreadable,
  };
}

/** A resource makes only a few transitions. */
const EVENTS_MAX = 100;

async function exportPayment(
  { stores, encrypter }: FindDeps,
  payer: StoredPayer & { names: Customer },
) {
  const { _id: payment_id, account_id, livemode, names: customer } = payer;
  const owner = { account_id, livemode };
  const payment = await stores.payments.get(payment_id);
  const refunds = await listRefunds(stores, payer);
  const ids = [payment_id, ...refunds.map(({ _id }) => _id)];
  const [disputes, callbacks, events, records] = await Promise.all([
    stores.disputes.forPayment(payment_id),
    Promise.all(ids.map((id) => stores.callbacks.forResource(id))),
    Promise.all(
      ids.map((id) => stores.events.list({ ...owner, resource_id: id, limit: EVENTS_MAX })),
    ),
    Promise.all(ids.map((id) => stores.idempotency.forResource(id))),
  ]);
  return {
    payment_id,
    customer,
    payment: payment && leaveOutHashes(payment),
    refunds,
    // Only a connector decrypts evidence.
    disputes: disputes.map(({ evidence: _evidence, ...dispute }) => dispute),
    callbacks: callbacks
      .flat()
      .map(({ signature: _, key_id: signed_by, ...callback }) => ({ ...callback, signed_by })),
    events: events.flat().map(({ _id: id, type, body }) => ({ id, type, body })),
    idempotency: await Promise.all(
      records
        .filter((record) => record !== null)
        .map(async ({ key, resource_id, request, body, created_at, expires_at }) => ({
          ...{ key, resource_id, created_at, expires_at },
          request: request !== null && 'stored' in request ? { ...request.stored, customer } : null,
          answer: body === null ? null : await decryptAnswer(encrypter, resource_id, body),
        })),
    ),
  };
}

function leaveOutHashes({
  customer: _customer,
  token_hash: _token,
  browser_hash: _browser,
  ...payment
}: PaymentDocument) {
  return payment;
}

function listRefunds(
  { refunds }: WriteDeps['stores'],
  { account_id, livemode, _id: payment_id }: StoredPayer,
): Promise<RefundDocument[]> {
  return refunds.export({ account_id, livemode, payment_id }).toArray();
}

/**
 * Erases a payer from ended payments, with the reasons of their refunds; the books stay. Safe to
 * interrupt and repeat: each payment is one transaction.
 * @throws ServiceError `account_not_found`
 */
export async function erasePayer(deps: FindDeps & WriteDeps, name: PayerName, isDryRun: boolean) {
  const { account_id, livemode } = name;
  const { payers, unreadable } = await findPayer(deps, name);
  const erased: string[] = [];
  const left: { payment_id: string; reason: string }[] = [];
  for (const payer of payers.values()) {
    const reason = await erasePayment(deps, payer, isDryRun);
    if (reason === undefined) erased.push(payer._id);
    else left.push({ payment_id: payer._id, reason });
  }
  return { account_id, environment: toEnv(livemode), dry_run: isDryRun, erased, left, unreadable };
}

/** @returns why the payment keeps its payer; undefined when it is erased */
async function erasePayment(
  { mongo, stores, audit }: WriteDeps,
  payer: StoredPayer,
  isDryRun: boolean,
): Promise<string | undefined> {
  const { _id: payment_id, account_id, livemode } = payer;
  const payment = await stores.payments.get(payment_id);
  if (payment === null) return 'it is not written yet';
  const refunds = await listRefunds(stores, payer);
  const isHeld = (await listHeld({ stores }, payment_id)).length > 0;
  const reasons: [isLeft: boolean, reason: string][] = [
    [isHeld, 'money that came for it is in question'],
    [isInFlight('payment', payment.status), `it is ${payment.status}`],
    [refunds.some(({ status }) => isInFlight('refund', status)), 'a refund is processing'],
    [(payment.disputes_open ?? 0) > 0, 'a dispute is open'],
  ];
  const [, reason] = reasons.find(([isLeft]) => isLeft) ?? [];
  if (reason !== undefined || isDryRun) return reason;
  // By another command, since it was listed.
  if (isWithoutPayer(payment)) return undefined;
  const isErased = await inTransaction(mongo, async (session) => {
    const { status, customer } = payment;
    if (!(await stores.payments.erasePayer(payment_id, { status, customer }, session))) {
      return await abandon(session);
    }
    await stores.refunds.eraseReasons(payment_id, session);
    await stores.disputes.eraseEvidence([payment_id], session);
    const ids = [payment_id, ...refunds.map(({ _id }) => _id)];
    await stores.idempotency.eraseAnswers(ids, session);
    const change = { act: 'payer.erased', account_id, livemode, target: payment_id } as const;
    await audit(change, session);
    return true;
  });
  if (isErased) return undefined;
  const current = await stores.payments.get(payment_id);
  return current !== null && isWithoutPayer(current) ? undefined : 'it has just changed';
}

function isWithoutPayer({ customer: { ciphertext, reference } }: PaymentDocument): boolean {
  return ciphertext === null && reference === null;
}
