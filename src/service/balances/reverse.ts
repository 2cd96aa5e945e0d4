import type { ClientSession } from 'mongodb';
import { parseBookCurrency } from '../../domain/crypto/assets';
import { ServiceError } from '../../domain/errors';
import type { EntryDocument } from '../../ledger/documents';
import { type EntryLine, operationId } from '../../ledger/entries';
import { ENTRY_LINES } from '../../ledger/entry-lines';
import { releaseActed } from '../../movements/acts';
import type { WriteDeps } from '../deps';
import { buildEntryDetails, findCredit, postCorrection } from './correction';
import type { Note } from './fund';

/** No workflow decides about these entries. */
const REVERSIBLE: readonly string[] = [
  'funded',
  'adjusted',
  'platform_posted',
  'payment_clawed_back',
  'payment_dispute_opened',
];

/** Entries that say what a bank moved: where it did not, no statement has them. */
const CORRECTED_BY_REVERSAL: readonly string[] = ['funded', 'adjusted', 'platform_posted'];

/** @throws ServiceError `operation_not_found`, `not_reversible` */
export async function prepareReversal(
  { stores: { ledger } }: Pick<WriteDeps, 'stores'>,
  id: string,
) {
  const original = await ledger.findEntry(id);
  const book = original === null ? null : await ledger.book(original.book);
  if (original === null || book === null) {
    throw new ServiceError('operation_not_found', `There is no operation ${id}.`);
  }
  if (!REVERSIBLE.includes(original.kind)) {
    throw new ServiceError(
      'not_reversible',
      `${id} belongs to a payment, refund or payout: correct the balance instead.`,
    );
  }
  const { account_id, livemode, currency } = book;
  const lines = parseLines(original, currency);
  return { original, account_id, livemode, currency, lines };
}

/**
 * A repeat posts nothing.
 * @throws ServiceError `operation_not_found`, `not_reversible`, `insufficient_balance`,
 * `approval_decided`
 */
export async function reverseOperation(deps: WriteDeps, id: string, note: Note) {
  const { original, ...reversed } = await prepareReversal(deps, id);
  const { lines: reversedLines, ...owner } = reversed;
  const lines = ENTRY_LINES.reversed(reversedLines);
  const { balance_account, amount } = findCredit(lines);
  const { approval_id, count } = note;
  const entry = {
    ...({ kind: 'reversed', resource_id: id, ...owner, lines } as const),
    // A correction that no bank has made is on no statement, nor is its reversal.
    offsets: CORRECTED_BY_REVERSAL.includes(original.kind) ? id : undefined,
    ...(await buildEntryDetails(deps, owner, note)),
  };
  const writeMore = async (session: ClientSession): Promise<void> => {
    await releaseActed(deps.stores, { entry: id, reversal: entry }, session);
    await markDisputeWon(deps, original, entry.at, session);
    await count?.(session);
  };
  const balance = await postCorrection(deps, entry, { balance_account, approval_id, writeMore });
  return { ...balance, amount };
}

/** Closes the dispute whose money an entry took, so that it comes back once. */
async function markDisputeWon(
  { stores: { payments } }: WriteDeps,
  { _id, kind, resource_id }: EntryDocument,
  at: string,
  session: ClientSession,
): Promise<void> {
  if (!kind.startsWith('payment_')) return;
  const { disputes = [] } = (await payments.get(resource_id, session)) ?? {};
  const dispute = disputes.find(
    (each) => operationId({ ...each, kind: `payment_${each.kind}`, resource_id }) === _id,
  );
  if (dispute !== undefined) {
    const { id, amount, fee } = dispute;
    const closing = { state: 'won', won: amount, fee_returned: fee, is_reversed: true } as const;
    const change = { ...closing, closed_at: at, closed_by: `reversed:${_id}` };
    const from = { id, states: ['opened', 'lost'] as const };
    if (await payments.closeDispute(resource_id, from, { at, change, act: {} }, session)) return;
  }
  throw new ServiceError('not_reversible', `The dispute of ${_id} is won already.`);
}

function parseLines({ lines }: EntryDocument, currency: string): EntryLine[] {
  const isAsset = parseBookCurrency(currency) !== undefined;
  return lines.map(({ account, amount }) =>
    isAsset ? { account, amount: BigInt(String(amount)) } : { account, amount: Number(amount) },
  );
}
