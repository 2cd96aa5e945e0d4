import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
} from '@temporalio/workflow';
import { assertNever } from '../../src/domain/assert';
import { formatUnits } from '../../src/domain/crypto/assets';
import type { CryptoCallback, CryptoPaymentCallbackName } from '../../src/domain/crypto/callback';
import { isAnyPending } from '../../src/domain/crypto/deposit';
import {
  applyDeposit,
  applyReorg,
  applyScreening,
  type DepositChange,
} from '../../src/domain/crypto/deposit-book';
import { cryptoPaymentWorkflowId } from '../../src/domain/crypto/payment';
import type {
  CryptoPaymentResult,
  CryptoPaymentResume,
  CryptoPaymentStart,
} from '../../src/domain/crypto/workflow';
import type { Due } from '../shared/alarm';
import { listen, untilOpened } from '../shared/handlers';
import { openMailbox } from '../shared/mailbox';
import { assertIdentity } from '../shared/refusal';
import { runUntilFinal } from '../shared/run-loop';
import { note } from '../shared/state';
import { actFault, applyAct } from './acts';
import { applyChange, getDepositBook, isOpen, updateAttention } from './deposits';
import { messages } from './messages';
import { load, open } from './opening';
import {
  type CryptoPayment,
  type CryptoPaymentItem,
  type CryptoPaymentMailbox,
  getResult,
  getState,
  isWaiting,
  record,
} from './state';

/**
 * Lifecycle of one crypto payment: opened with a rate and an address, then changed by confirmed
 * deposits, by operators and by the end of the window.
 * @see docs/api.md#states-of-a-crypto-payment
 */
export async function cryptoPayment(start: CryptoPaymentStart): Promise<CryptoPaymentResult> {
  assertIdentity('crypto_payment_id', Object(start).crypto_payment_id, cryptoPaymentWorkflowId);
  const mail: CryptoPaymentMailbox = openMailbox();
  listen(mail, messages, {
    noun: 'crypto payment',
    resumed: 'resume' in start,
    state: () => getResult(mail, start.crypto_payment_id),
    opened: async () => getState(await untilOpened(mail)),
    actFault,
  });
  // A cancel request from the Temporal UI is ignored: it must not interrupt a booking.
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
    handle: (item) => handle(payment, item),
    isFinal: () => !isWaiting(payment) && payment.screenings.size === 0,
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
      note(payment, `unreadable callback \`${item.name}\`: ${item.fault}`);
      return await record.flagMalformed(payment);
    case 'screened': {
      const { transaction_id, answer } = item;
      payment.screenings.delete(transaction_id);
      record.logActivity(payment, `screening of ${transaction_id}: ${answer.outcome}`);
      return await applyChange(
        payment,
        applyScreening(getDepositBook(payment), transaction_id, answer.outcome),
        {},
      );
    }
    case 'operator':
      return await applyAct(payment, item);
    default:
      assertNever(item);
  }
}

async function applyCallback(
  payment: CryptoPayment,
  name: CryptoPaymentCallbackName,
  callback: CryptoCallback,
): Promise<void> {
  const { callback_id } = callback;
  const change = buildChange(payment, name, callback);
  if (change === undefined) {
    note(payment, `callback \`${name}\` (${callback_id}) lacks fields that it must have`);
    return await record.flagMalformed(payment);
  }
  note(payment, `callback \`${name}\` (${callback_id}): ${describe(payment, callback)}`);
  await applyChange(payment, change, { name, callback });
}

function describe({ facts }: CryptoPayment, callback: CryptoCallback): string {
  const { transaction_id = '', amount, confirmations = 0 } = callback;
  if (amount === undefined) return transaction_id;
  const depth = `${confirmations} of ${facts.required_confirmations} confirmations`;
  return `${formatUnits(amount, facts)} by ${transaction_id}, ${depth}`;
}

/** @returns undefined where a field is missing */
function buildChange(
  payment: CryptoPayment,
  name: CryptoPaymentCallbackName,
  { transaction_id, amount, confirmations, occurred_at, screening }: CryptoCallback,
): DepositChange | undefined {
  const book = getDepositBook(payment);
  switch (name) {
    case 'deposit': {
      if (transaction_id === undefined || amount === undefined) return undefined;
      if (confirmations === undefined) return undefined;
      const seen_at = new Date(occurred_at).toISOString();
      const verdict = { screening: screening ?? null };
      const report = { transaction_id, amount, confirmations, seen_at, ...verdict };
      return applyDeposit(book, report, payment.facts);
    }
    case 'deposit_undone':
      return transaction_id === undefined ? undefined : applyReorg(book, transaction_id);
    case 'expired':
      return closeEarly(payment);
    default:
      return assertNever(name);
  }
}

function closeEarly(payment: CryptoPayment): DepositChange {
  const isEmpty = payment.status === 'awaiting_deposit' && !isAnyPending(payment.deposits);
  if (!isEmpty) return { kind: 'unapplied', reason: 'a deposit is there, or it has ended' };
  payment.facts.expires_at = new Date().toISOString();
  return { kind: 'changed', deposits: [...payment.deposits] };
}

/** Time after the window by which a deposit should be confirmed. */
const UNCONFIRMED_MS = 24 * 3_600_000;

function nextDue(payment: CryptoPayment): Due | undefined {
  const { facts, snoozedUntil, closed, status, isOverdueReported } = payment;
  const closes = Date.parse(facts.expires_at);
  const isClosing = isWaiting(payment) && !closed;
  // A snooze only silences the attention reason: the window closes on time.
  if (snoozedUntil !== undefined && !(isClosing && closes < snoozedUntil)) {
    return { at: snoozedUntil, summary: 'The snooze ends', act: () => wake(payment) };
  }
  if (isClosing) {
    return { at: closes, summary: 'The window closes', act: () => close(payment) };
  }
  if (!isWaiting(payment) || isOverdueReported || status !== 'awaiting_deposit') return undefined;
  const act = () => record.flagOverdue(payment, 'deposit_unconfirmed');
  return { at: closes + UNCONFIRMED_MS, summary: 'The deposit should be confirmed', act };
}

/** Ends the window: without a deposit the payment expires; an underpaid one needs an operator. */
async function close(payment: CryptoPayment): Promise<void> {
  if (isOpen(payment)) return;
  await applyChange(payment, { kind: 'changed', deposits: [...payment.deposits] }, {});
  payment.closed = true;
  if (isWaiting(payment) && payment.snoozedUntil === undefined) await updateAttention(payment);
}

async function wake(payment: CryptoPayment): Promise<void> {
  payment.snoozedUntil = undefined;
  await updateAttention(payment);
}
