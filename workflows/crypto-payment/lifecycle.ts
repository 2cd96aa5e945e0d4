import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
} from '@temporalio/workflow';
import { assertNever } from '../../src/domain/assert';
import { isAnyPending } from '../../src/domain/crypto/deposit';
import {
  type ActTarget,
  actOnDeposits,
  depositActFault,
  findResolutionFault,
  resolveDeposit,
} from '../../src/domain/crypto/deposit-acts';
import { applyScreening } from '../../src/domain/crypto/deposit-report';
import type { DepositChange } from '../../src/domain/crypto/deposit-set';
import {
  CRYPTO_PAYMENT_IN_FLIGHT,
  CRYPTO_PAYMENT_STATUSES,
  type CryptoPaymentAct,
  type CryptoPaymentStatus,
  cryptoPaymentWorkflowId,
} from '../../src/domain/crypto/payment';
import type {
  CryptoPaymentResult,
  CryptoPaymentResume,
  CryptoPaymentStart,
  CryptoPaymentState,
} from '../../src/domain/crypto/workflow';
import { now } from '../shared/clock';
import { listen, openMailbox, untilOpened } from '../shared/inbox';
import { type Due, runUntilFinal } from '../shared/loop';
import { findNamed } from '../shared/movement';
import {
  type ActRules,
  authorize,
  buildAudit,
  type OperatorItem,
  stateFault,
} from '../shared/operator-acts';
import { assertIdentity, findRefusal, rejectUpdate } from '../shared/refusal';
import { note } from '../shared/state';
import { isChainRead } from './bank';
import { applyCallback } from './callbacks';
import { applyChange, getDepositSet, isOpen, orReload, updateAttention } from './deposits';
import { messages } from './messages';
import { load, open } from './opening';
import {
  type CryptoPayment,
  type CryptoPaymentItem,
  type CryptoPaymentKind,
  type CryptoPaymentMailbox,
  getResult,
  getState,
  isWaiting,
  record,
} from './state';

/** @see docs/api.md#states-of-a-crypto-payment */
export async function cryptoPayment(start: CryptoPaymentStart): Promise<CryptoPaymentResult> {
  assertIdentity('crypto_payment_id', Object(start).crypto_payment_id, cryptoPaymentWorkflowId);
  const mail: CryptoPaymentMailbox = openMailbox(start);
  listen<CryptoPaymentKind, CryptoPayment>(mail, messages, {
    noun: 'crypto payment',
    resumed: 'resume' in start,
    state: () => getResult(mail, start.crypto_payment_id),
    opened: async () => getState(await untilOpened(mail)),
    actFault,
  });
  // A cancel request from the Temporal UI must not interrupt a booking.
  return await CancellationScope.nonCancellable(async () => {
    const opening = 'resume' in start ? await load(mail, start) : await open(mail, start);
    mail.opening = opening;
    if (opening.outcome === 'refused') await condition(allHandlersFinished);
    else await runLifecycle(mail, opening.resource);
    return getResult(mail, start.crypto_payment_id);
  });
}

type Resuming = (start: CryptoPaymentResume) => Promise<CryptoPaymentResult>;

function runLifecycle({ inbox }: CryptoPaymentMailbox, payment: CryptoPayment): Promise<void> {
  return runUntilFinal({
    inbox,
    clock: payment.clock,
    handle: (item) => handle(payment, item),
    reportGivenUp: (what, refused) => record.flagGivenUp(payment, what, refused),
    isFinal: () => !isWaiting(payment) && payment.screenings.size === 0 && !isConfirming(payment),
    nextDue: () => nextDue(payment),
    isIdle: () => payment.screenings.size === 0,
    continueInNewRun: () =>
      continueAsNew<Resuming>({
        crypto_payment_id: payment.id,
        resume: true,
        request_id: payment.facts.request_id,
      }),
  });
}

/** Returns when all changes of the item are written. */
async function handle(payment: CryptoPayment, item: CryptoPaymentItem): Promise<void> {
  switch (item.kind) {
    case 'callback':
      return await record.applyVerified(payment, item, () =>
        applyCallback(payment, item.name, item.callback),
      );
    case 'malformed':
      note(payment, `unreadable callback ${item.name}: ${item.fault}`);
      return await record.flagMalformed(payment);
    case 'screened': {
      const { transaction_id, answer } = item;
      payment.screenings.delete(transaction_id);
      record.logActivity(payment, `screening of ${transaction_id}: ${answer.outcome}`);
      return await applyChange(
        payment,
        applyScreening(getDepositSet(payment), transaction_id, answer.outcome),
        {},
      );
    }
    case 'operator':
      return await applyAct(payment, item);
    default:
      assertNever(item);
  }
}

const UNCONFIRMED_MS = 24 * 3_600_000;

function isConfirming({ deposits, isOverdueReported }: CryptoPayment): boolean {
  return isAnyPending(deposits) && !isOverdueReported;
}

function nextDue(payment: CryptoPayment): Due | undefined {
  const { snoozedUntil, closed, closesAt } = payment;
  const isClosing = isWaiting(payment) && !closed;
  // A snooze only silences the attention reason: the window closes on time.
  if (snoozedUntil !== undefined && !(isClosing && closesAt < snoozedUntil)) {
    return { at: snoozedUntil, summary: 'The snooze ends', act: () => wake(payment) };
  }
  if (isClosing) {
    return { at: closesAt, summary: 'The window closes', act: () => close(payment) };
  }
  const at = findOverdueTime(payment);
  const act = () => record.flagOverdue(payment, 'deposit_unconfirmed');
  return at === undefined ? undefined : { at, summary: 'The deposit should be confirmed', act };
}

function findOverdueTime(payment: CryptoPayment): number | undefined {
  const { deposits, closesAt, isOverdueReported } = payment;
  if (isOverdueReported) return undefined;
  const pending = deposits.filter((deposit) => deposit.status === 'pending');
  if (pending.length === 0) return undefined;
  return Math.max(closesAt, ...pending.map(({ seen_at }) => Date.parse(seen_at))) + UNCONFIRMED_MS;
}

const ASK_AGAIN_MS = { min: 60_000, max: 30 * 60_000 };

/** Closes the window then, whatever the connector has read. */
const CLOSE_MS_MAX = 6 * 3_600_000;

async function close(payment: CryptoPayment): Promise<void> {
  if (isOpen(payment)) return;
  const ends = Date.parse(payment.facts.expires_at);
  const isBound = now(payment) >= ends + CLOSE_MS_MAX;
  if (!isBound && !(await isChainRead(payment, ends))) {
    // The delay doubles, so that an outage of the connector costs little history.
    const delay = Math.max(ASK_AGAIN_MS.min, now(payment) - ends);
    payment.closesAt = now(payment) + Math.min(ASK_AGAIN_MS.max, delay);
    note(payment, 'the window stays open: the connector has not read the chain up to its end');
    return;
  }
  await applyChange(payment, { kind: 'changed', deposits: [...payment.deposits], steps: [] }, {});
  payment.closed = true;
  if (isWaiting(payment) && payment.snoozedUntil === undefined) await updateAttention(payment);
}

async function wake(payment: CryptoPayment): Promise<void> {
  payment.snoozedUntil = undefined;
  await updateAttention(payment);
}

const neverLeft = (status: CryptoPaymentStatus) =>
  `The payment is ${status}; nothing is awaited any more.`;

/** Deposits decide, too. */
const ACTS: ActRules<CryptoPaymentAct, CryptoPaymentStatus> = {
  release: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  reject: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  accept: {
    from: ['underpaid'],
    refusal: (status) =>
      `The payment is ${status}; only an underpaid one can be accepted as it is.`,
  },
  return: {
    from: ['underpaid'],
    refusal: (status) => `The payment is ${status}; only an underpaid one can be returned.`,
  },
  credit_late: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  resolve_movement: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  confirm: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  snooze: { from: CRYPTO_PAYMENT_IN_FLIGHT, refusal: neverLeft },
};

function actFault(
  payment: CryptoPayment,
  what: CryptoPaymentAct,
  target?: ActTarget,
): string | undefined {
  return (
    stateFault(ACTS, payment.status, what) ??
    depositActFault(getDepositSet(payment), what, isOpen(payment), target)
  );
}

type ActItem = OperatorItem<CryptoPaymentAct, CryptoPaymentState>;

/** Decides again, since the state may have changed. */
async function applyAct(payment: CryptoPayment, item: ActItem): Promise<void> {
  const { what, hours, answer } = item;
  const fault = actFault(payment, what, item.target ?? {});
  if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
  const change = buildChange(payment, item);
  if (typeof change === 'string') return rejectUpdate(answer, 'wrong_state', change);
  const message = findTargetFault(payment, item);
  if (message !== undefined) return rejectUpdate(answer, 'invalid_request', message);
  if (!(await authorize('crypto_payment', record, payment, item))) return;
  const { act } = item;
  record.logActivity(payment, `operator ${act.operator}: ${what} (${act.reason})`);
  const audit = buildAudit(item);
  if (what === 'snooze') await orReload(payment, record.snooze(payment, audit, hours));
  else if (what === 'acknowledge') {
    const refused = await orReload(payment, record.acknowledge(payment, audit, item.attention));
    if (refused) return rejectUpdate(answer, refused.code, refused.message);
    await updateAttention(payment);
  } else {
    try {
      await applyChange(payment, change, { audit });
    } catch (error) {
      if (findRefusal(error, 'insufficient_balance') === undefined) throw error;
      const message = 'The merchant’s balance does not hold it any more; nothing was booked.';
      return rejectUpdate(answer, 'insufficient_balance', message);
    }
  }
  answer.resolve(getState(payment));
}

/** @returns a text: why what is in suspense can't be resolved so */
function buildChange(
  payment: CryptoPayment,
  { what, target, movement: named, as, amount }: ActItem,
): DepositChange | string {
  const depositSet = getDepositSet(payment);
  if (what === 'snooze' || what === 'acknowledge') {
    return { kind: 'changed', deposits: [...depositSet.deposits], steps: [] };
  }
  if (what !== 'resolve_movement') return actOnDeposits(depositSet, what, target);
  const movement = findNamed(payment, named);
  if (typeof movement === 'string') return movement;
  if (as === undefined) return 'Say who has it, or bears it: `as`.';
  if (amount !== undefined) return 'All of a deposit is resolved at once: leave out the amount.';
  const fault = findResolutionFault(movement, as);
  return fault ?? resolveDeposit(depositSet, movement, as, target);
}

function findTargetFault(
  { facts }: CryptoPayment,
  { what, as, target: { transaction_id, address } = {} }: ActItem,
): string | undefined {
  if (what !== 'resolve_movement') return undefined;
  if (as === 'customer') {
    const isMissing = facts.livemode && transaction_id === undefined;
    return isMissing
      ? 'transaction_id: the transaction that sent it back is required on live'
      : undefined;
  }
  const isNamed = transaction_id !== undefined || address !== undefined;
  return isNamed ? 'transaction_id and address: only of what the customer has back' : undefined;
}
