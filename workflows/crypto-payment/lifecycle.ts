import { isAnyPending } from '../../src/domain/crypto/deposit';
import {
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
import type { CryptoPaymentResult, CryptoPaymentStart } from '../../src/domain/crypto/workflow';
import { now } from '../shared/clock';
import { listen, openMailbox } from '../shared/inbox';
import {
  type ActItem,
  type Acts,
  handleCommon,
  type Lifecycle,
  runLifecycle,
} from '../shared/lifecycle';
import { findNamed } from '../shared/movement';
import { type ActRules, type AuditedAct, stateFault } from '../shared/operator-acts';
import { findRefusal } from '../shared/refusal';
import { note } from '../shared/state';
import { isChainRead, load, open } from './bank';
import {
  applyCallback,
  applyChange,
  getDepositSet,
  isOpen,
  orReload,
  updateAttention,
} from './deposits';
import {
  type CryptoPayment,
  type CryptoPaymentItem,
  type CryptoPaymentKind,
  type CryptoPaymentMailbox,
  getResult,
  getState,
  isWaiting,
  messages,
  record,
} from './state';

/** @see docs/api.md#states-of-a-crypto-payment */
export async function cryptoPayment(start: CryptoPaymentStart): Promise<CryptoPaymentResult> {
  const mail: CryptoPaymentMailbox = openMailbox(start);
  listen(rules, mail, start);
  await runLifecycle(rules, mail, () =>
    'resume' in start ? load(mail, start) : open(mail, start),
  );
  return getResult(mail, start.crypto_payment_id);
}

const rules: Lifecycle<CryptoPaymentKind, CryptoPayment, CryptoPaymentItem> = {
  kind: 'crypto_payment',
  noun: 'crypto payment',
  workflowId: cryptoPaymentWorkflowId,
  messages,
  record,
  handle: async (payment, item) => {
    if (item.kind !== 'screened') return await handleCommon(rules, payment, item);
    const { transaction_id, answer } = item;
    payment.screenings.delete(transaction_id);
    record.logActivity(payment, `screening of ${transaction_id}: ${answer.outcome}`);
    const change = applyScreening(getDepositSet(payment), transaction_id, answer.outcome);
    await applyChange(payment, change, {});
  },
  applyCallback: (payment, { name, callback }) => applyCallback(payment, name, callback),
  actFault: (payment, what, target) =>
    stateFault(ACTS, payment.status, what) ??
    depositActFault(getDepositSet(payment), what, isOpen(payment), target),
  checkAct: (payment, item) => {
    if (item.what === 'snooze' || item.what === 'acknowledge') return undefined;
    const change = buildChange(payment, item);
    if (typeof change === 'string') return { code: 'wrong_state', message: change };
    const message = findTargetFault(payment, item);
    return message === undefined ? undefined : { code: 'invalid_request', message };
  },
  acts: {
    snooze: async (payment, audit, { hours }) => {
      await orReload(payment, record.snooze(payment, audit, hours));
      return undefined;
    },
    acknowledge: async (payment, audit, { attention }) => {
      const refused = await orReload(payment, record.acknowledge(payment, audit, attention));
      if (refused === undefined) await updateAttention(payment);
      return refused;
    },
    release: decide,
    reject: decide,
    accept: decide,
    return: decide,
    credit_late: decide,
    resolve_movement: decide,
    confirm: decide,
  } satisfies Acts<CryptoPaymentKind, CryptoPayment>,
  isFinal: (payment) =>
    !isWaiting(payment) &&
    payment.screenings.size === 0 &&
    (payment.isOverdueReported || !isAnyPending(payment.deposits)),
  isIdle: ({ screenings }) => screenings.size === 0,
  nextDue: (payment) => {
    const { snoozedUntil, closed, closesAt, deposits, isOverdueReported } = payment;
    const isClosing = isWaiting(payment) && !closed;
    // A snooze only silences the attention reason: the window closes on time.
    if (snoozedUntil !== undefined && !(isClosing && closesAt < snoozedUntil)) {
      const act = async () => {
        payment.snoozedUntil = undefined;
        await updateAttention(payment);
      };
      return { at: snoozedUntil, summary: 'The snooze ends', act };
    }
    if (isClosing) {
      return { at: closesAt, summary: 'The window closes', act: () => close(payment) };
    }
    const pending = deposits.filter((deposit) => deposit.status === 'pending');
    if (isOverdueReported || pending.length === 0) return undefined;
    const lastSeen = Math.max(...pending.map(({ seen_at }) => Date.parse(seen_at)));
    const at = Math.max(closesAt, lastSeen) + UNCONFIRMED_MS;
    const act = () => record.flagOverdue(payment, 'deposit_unconfirmed');
    return { at, summary: 'The deposit should be confirmed', act };
  },
  getState,
  getResult,
};

const UNCONFIRMED_MS = 24 * 3_600_000;

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

/** Decides about deposits. */
async function decide(payment: CryptoPayment, audit: AuditedAct, item: Item) {
  const change = buildChange(payment, item);
  if (typeof change === 'string') return change;
  try {
    await applyChange(payment, change, { audit });
    return undefined;
  } catch (error) {
    if (findRefusal(error, 'insufficient_balance') === undefined) throw error;
    const message = 'The merchant’s balance does not hold it any more; nothing was booked.';
    return { code: 'insufficient_balance', message };
  }
}

type Item = ActItem<CryptoPaymentKind>;

/** @returns a text: why what is in suspense can't be resolved so */
function buildChange(
  payment: CryptoPayment,
  { what, target, movement: named, as, amount }: Item,
): DepositChange | string {
  const depositSet = getDepositSet(payment);
  if (what === 'snooze' || what === 'acknowledge') return 'It decides about no deposit.';
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
  { what, as, target: { transaction_id, address } = {} }: Item,
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
