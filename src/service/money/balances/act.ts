import type { ClientSession } from 'mongodb';
import { z } from 'zod';
import { parseBookCurrency } from '../../../domain/crypto/assets';
import { omitUndefined } from '../../../domain/defined';
import { type DisputeTransfer, sumTaken } from '../../../domain/dispute/report';
import { ServiceError } from '../../../domain/errors';
import {
  type ApprovalLimits,
  type ApprovalRequired,
  type Credited,
  computeCredit,
} from '../../../domain/operators/approval';
import type { VerifiedOperator } from '../../../domain/operators/operator-act';
import { type EntryDocument, type NewEntry, operationId, PLATFORM } from '../../../ledger/entries';
import { ENTRY_LINES } from '../../../ledger/entry-lines';
import { releaseActed } from '../../../movements/acts';
import { recordDisputed } from '../../../movements/register';
import type { WriteDeps } from '../../access';
import { postOrRequest } from '../../operators/approvals/request';
import {
  type Adjustment,
  adjustBalance,
  buildEntryDetails,
  findCredit,
  PLATFORM_KINDS,
  parseAgainst,
  postCorrection,
  postPlatform,
} from './adjust';

import { fundBalance, type Note, type PostedBalance, type PostOptions } from './fund';

const Subject = z.object({
  account_id: z.string(),
  livemode: z.boolean(),
  balance_account: z.string(),
  currency: z.string(),
  id: z.string(),
});

/** Stored in an approval. */
const BalanceCall = z.discriminatedUnion('act', [
  z.object({
    ...Subject.shape,
    act: z.literal('fund'),
    amount: z.string(),
    connector: z.string().optional(),
    bank_reference: z.string().optional(),
  }),
  z.object({
    ...Subject.shape,
    act: z.literal('adjust'),
    amount: z.string(),
    against: z.custom<Adjustment['against']>(
      (text) => typeof text === 'string' && parseAgainst(text) !== undefined,
    ),
    bank_reference: z.string().optional(),
    owed: z.boolean().optional(),
  }),
  z.object({ act: z.literal('reverse'), id: z.string() }),
  z.object({
    act: z.literal('platform.post'),
    id: z.string(),
    livemode: z.boolean(),
    connector: z.string(),
    kind: z.enum(PLATFORM_KINDS),
    currency: z.string(),
    amount: z.string(),
    bank_reference: z.string(),
  }),
]);
export type BalanceCall = z.infer<typeof BalanceCall>;

export type Posted = PostedBalance & { posted: number | bigint };

/**
 * @param count counts what it credits, in the same transaction
 * @throws ServiceError those of funding, adjusting and reversing
 */
export async function postBalanceAct(
  deps: WriteDeps,
  call: BalanceCall,
  note: Note,
  count?: PostOptions['writeMore'],
): Promise<Posted> {
  const counted = { ...note, count };
  if (call.act === 'fund') {
    const { act, id, amount, ...funding } = call;
    const money = { ...funding, amount: Number(amount) };
    const options = { id, note: counted };
    return { ...(await fundBalance(deps, money, options)), posted: money.amount };
  }
  if (call.act === 'adjust') {
    const { act, id, ...adjustment } = call;
    const isAsset = parseBookCurrency(call.currency) !== undefined;
    const amount = isAsset ? BigInt(call.amount) : Number(call.amount);
    const balance = await adjustBalance(deps, { ...adjustment, amount }, counted, id);
    return { ...balance, posted: amount };
  }
  if (call.act === 'platform.post') {
    const { act, id, ...movement } = call;
    const amount = Number(call.amount);
    const money = { ...movement, amount };
    return { ...(await postPlatform(deps, money, counted, id)), posted: amount };
  }
  const { amount, ...balance } = await reverseOperation(deps, call.id, counted);
  return { ...balance, posted: amount };
}

interface Request {
  /** Required on live. */
  verified: VerifiedOperator | undefined;
  limits: ApprovalLimits;
}

/**
 * Posts an act or, on live above a limit, requests the approval of a second operator.
 * @see docs/operators.md#approvals
 * @throws ServiceError `operator_key_required`, `invalid_usage`, `operation_id_used`, and those of
 * the act
 */
export async function actOnBalance(
  deps: WriteDeps,
  call: BalanceCall,
  note: Note,
  { verified, limits }: Request,
): Promise<Posted | ApprovalRequired> {
  const { livemode, operation_id, ...credited } = await measure(deps, call);
  if (!livemode) return await postBalanceAct(deps, call, note);
  const { reason } = note;
  if (verified === undefined || reason === undefined) {
    const message = 'On live this needs an operator’s key and a reason.';
    throw new ServiceError('operator_key_required', message);
  }
  if (call.act === 'fund' && (call.connector === undefined || call.bank_reference === undefined)) {
    const message =
      'On live a funding needs --connector and --bank-reference: the bank that has the money, and ' +
      'its name for the movement.';
    throw new ServiceError('invalid_usage', message);
  }
  const { act, ...input } = call;
  const name = act === 'platform.post' ? act : `balance.${act}`;
  return await postOrRequest(deps, {
    act: name,
    target: operation_id,
    input,
    credited,
    verified,
    limits,
    reason,
    isRepeat: (await deps.stores.ledger.findEntry(operation_id)) !== null,
    post: (count) => postBalanceAct(deps, call, note, count),
  });
}

/** @throws ServiceError `operation_not_found`, `not_reversible` */
export async function isLiveCall(
  deps: Pick<WriteDeps, 'stores'>,
  call: BalanceCall,
): Promise<boolean> {
  if (call.act === 'reverse') return (await prepareReversal(deps, call.id)).livemode;
  return call.livemode;
}

export function readBalanceCall(act: string, input: object): BalanceCall {
  return BalanceCall.parse({ ...input, act: act.replace(/^balance\./, '') });
}

/** @returns also the id of the entry */
async function measure(
  deps: WriteDeps,
  call: BalanceCall,
): Promise<Credited & { livemode: boolean; operation_id: string }> {
  if (call.act === 'reverse') {
    const { livemode, ...facts } = await prepareReversal(deps, call.id);
    const credited = computeCredit('balance', 'reverse', { ...facts, amount: 0 });
    return { ...credited, livemode, operation_id: `reversed:${call.id}` };
  }
  const { act, livemode, id } = call;
  const operation_id = operationId({ kind: ENTRY_KINDS[act], resource_id: id });
  const credited =
    call.act === 'platform.post'
      ? computeCredit('platform', 'post', { ...call, account_id: PLATFORM })
      : computeCredit('balance', call.act, call);
  return { ...credited, livemode, operation_id };
}

const ENTRY_KINDS = {
  fund: 'funded',
  adjust: 'adjusted',
  'platform.post': 'platform_posted',
} as const;

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
async function prepareReversal({ stores: { ledger } }: Pick<WriteDeps, 'stores'>, id: string) {
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
  const isAsset = parseBookCurrency(currency) !== undefined;
  const lines = original.lines.map(({ account, amount }) =>
    isAsset ? { account, amount: BigInt(String(amount)) } : { account, amount: Number(amount) },
  );
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
    await deps.stores.ledger.leaveTransfer(id, session);
    await releaseActed(deps.stores, { entry: id, reversal: entry }, session);
    await markDisputeWon(deps, original, entry, session);
    await count?.(session);
  };
  const balance = await postCorrection(deps, entry, { balance_account, approval_id, writeMore });
  return { ...balance, amount };
}

const WON = { status: 'won' } as const;
const REVERSED = { is_reversed: true } as const;

/** Gives a dispute back what an entry took, once. */
async function markDisputeWon(
  { stores }: WriteDeps,
  { _id, kind, resource_id }: EntryDocument,
  entry: NewEntry,
  session: ClientSession,
): Promise<void> {
  if (!kind.startsWith('payment_')) return;
  const payment = await stores.payments.get(resource_id, session);
  const disputes = await stores.disputes.forPayment(resource_id, session);
  const isSource = ({ step }: DisputeTransfer) => operationId({ kind, resource_id, step }) === _id;
  const dispute = disputes.find(({ transfers }) => transfers.some(isSource));
  const transfer = dispute?.transfers.find(isSource);
  const isTaken =
    dispute && transfer && transfer.amount <= dispute.amount && transfer.fee <= dispute.fee;
  if (payment !== null && isTaken && transfer.is_reversed !== true) {
    const { amount, fee, fee_bearer } = transfer;
    const borne = { fee, ...omitUndefined({ fee_bearer }) };
    const { at } = entry;
    const by = operationId(entry);
    const back = { direction: 'in', amount, ...borne, held: 0, owed: 0, at, by } as const;
    const marked = dispute.transfers.map((each) =>
      each === transfer ? { ...each, ...REVERSED } : each,
    );
    const transfers: DisputeTransfer[] = [...marked, { ...back, ...REVERSED }];
    // A bank's own dispute ends by what the bank, or an operator, says of it.
    const isOver = dispute.kind === 'clawed_back';
    const change = { transfers, ...sumTaken(transfers), updated_at: at, ...(isOver ? WON : {}) };
    await stores.disputes.change(dispute._id, change, session);
    await stores.payments.countDisputed(resource_id, { amount: -amount, at }, session);
    await stores.payments.endReport(resource_id, at, session);
    const moved = { direction: 'in', amount, dispute: dispute._id } as const;
    const source = { kind: 'act', id: by } as const;
    await recordDisputed(stores, payment, { ...moved, source, entry }, session);
    return;
  }
  throw new ServiceError('not_reversible', `The dispute of ${_id} is won already.`);
}
