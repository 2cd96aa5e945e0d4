import type { ClientSession } from 'mongodb';
import { MAIN_BALANCE } from '../../domain/account/balance-account';
import { parseBookCurrency } from '../../domain/crypto/assets';
import { ServiceError } from '../../domain/errors';
import {
  computeRest,
  isOpenSent,
  SENDING_KINDS,
  type SendingKind,
  type SentHeld,
  type SentOutcome,
} from '../../domain/sent-held';
import { explainShortage, InsufficientBalance } from '../../ledger/insufficient-balance';
import type { Owned } from '../../ledger/resource-entries';
import { buildSentResolved, sentHeldId, toLineAmount } from '../../ledger/sent-entries';
import { LIFECYCLES } from '../../lifecycles';
import type { WriteDeps } from '../deps';
import { buildEntryDetails, type Correction } from './correction';
import { postOnce } from './fund';

type Sender = Owned & { balance_account?: string; payment_id?: string; sent_held?: SentHeld[] };

interface Held {
  kind: SendingKind;
  sender: Sender;
  held: SentHeld;
  /** Smallest units. */
  amount: bigint;
}

/** @throws ServiceError `operation_not_found`, `not_in_suspense` */
export async function findSentHeld(
  { stores }: Pick<WriteDeps, 'stores'>,
  id: string,
): Promise<Held> {
  const entry = await stores.ledger.findEntry(id);
  if (entry === null) throw new ServiceError('operation_not_found', `There is no operation ${id}.`);
  const { resource_id } = entry;
  const kind = SENDING_KINDS.find((each) => entry.kind === `${each}_sent_held`);
  const sender: Sender | null = kind ? await LIFECYCLES[kind].get(stores, resource_id) : null;
  const held = sender?.sent_held?.find(
    (each) => kind !== undefined && sentHeldId(kind, resource_id, each.id) === id,
  );
  if (kind === undefined || sender === null || held === undefined) {
    const message = `${id} is not about money that a bank sent otherwise than it was instructed.`;
    throw new ServiceError('not_in_suspense', message);
  }
  return { kind, sender, held, amount: computeRest(held) };
}

/**
 * Decides who bears what a bank sent otherwise than instructed; a repeat posts nothing.
 * @see docs/ledger.md#money-that-goes-wrong
 * @throws ServiceError `operation_not_found`, `not_in_suspense`, `insufficient_balance`,
 * `approval_decided`
 */
export async function resolveSentHeld(
  deps: WriteDeps,
  { id, as }: { id: string; as: SentOutcome },
  correction: Correction,
) {
  const found = await findSentHeld(deps, id);
  const { kind, sender, held, amount } = found;
  if (!isOpenSent(held) && held.resolved?.as !== as) throw createLeft(id);
  const { balance_account = MAIN_BALANCE, account_id, livemode } = sender;
  const { approval_id } = correction;
  const { at, note } = await buildEntryDetails(deps, sender, correction);
  const owed = as === 'merchant' ? (held.resolved?.owed ?? (await computeDebt(deps, found))) : 0;
  const entry = { ...buildSentResolved(kind, sender, held, { as, owed, at }), note };
  const writeMore = async (session: ClientSession) => {
    const { refunds, payouts, crypto_settlements, payments } = deps.stores;
    const store = { refund: refunds, payout: payouts, crypto_settlement: crypto_settlements }[kind];
    const resolved = { as, at, ...(owed === 0 ? {} : { owed }) };
    if (!(await store.resolveSentHeld(sender._id, held, resolved, session))) throw createLeft(id);
    const { payment_id } = sender;
    const isOfPayment = payment_id !== undefined && held.currency === sender.currency;
    if (as !== 'merchant' || !isOfPayment) return;
    await payments.takeLateRefund({ payment_id, amount: Number(amount) }, session);
  };
  const after = { as, currency: held.currency, amount: String(amount), ...note, approval_id };
  try {
    const act = { act: 'balance.resolved', after } as const;
    const balance = await postOnce(deps, entry, act, { balance_account, approval_id, writeMore });
    return { ...balance, amount: toLineAmount(amount, held.currency) };
  } catch (error) {
    if (!(error instanceof InsufficientBalance)) throw error;
    const debit = { balance_account, currency: held.currency, amount };
    const owner = { account_id, livemode };
    const { code, message } = await explainShortage(deps.stores.ledger, owner, debit);
    throw new ServiceError(code, `${message} Nothing was posted.`);
  }
}

/** Returns what the balance does not hold, in minor units; nobody owes an asset. */
async function computeDebt({ stores }: WriteDeps, { sender, held, amount }: Held): Promise<number> {
  if (parseBookCurrency(held.currency) !== undefined) return 0;
  const { account_id, livemode, balance_account = MAIN_BALANCE } = sender;
  const rows = await stores.ledger.balances(account_id, livemode);
  const row = rows.find(
    (each) => each.balance_account === balance_account && each.currency === held.currency,
  );
  return Math.max(0, Number(amount) - Number(row?.available ?? 0));
}

function createLeft(id: string): ServiceError {
  return new ServiceError('not_in_suspense', `The money of ${id} has left suspense.`);
}
