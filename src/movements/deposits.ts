import type { ClientSession } from 'mongodb';
import type { Movement, MovementReport } from '../domain/banks/movement';
import { bookCurrency } from '../domain/crypto/assets';
import type { Deposit } from '../domain/crypto/deposit';
import {
  changeMovement,
  type DepositStep,
  findDepositMovement,
  isFromSuspense,
} from '../domain/crypto/deposit-money';
import { buildDepositEntry } from '../ledger/crypto-entries';
import { operationId } from '../ledger/entries';
import type { Stores } from '../store';
import type { CryptoPaymentDocument } from '../store/crypto-payments';
import { type MovementDocument, toMovement } from '../store/movements';
import { buildMovement, type Moving, type Reported } from './register';

type Register = Pick<Stores, 'ledger' | 'movements'>;

type Audited = Moving & { audit?: { who: string; why: string } };

interface Context {
  stores: Register;
  /** After the transition. */
  payment: CryptoPaymentDocument;
  transition: Audited;
  session: ClientSession;
}

/** Money of a deposit that a transition changes. */
interface Changed {
  step: DepositStep;
  deposit: Deposit;
  /** Orders the rows of a transition. */
  order: number;
}

/**
 * Writes what a transition changes about the money of deposits, each with its entry.
 * @returns new and changed movements
 */
export async function recordDeposits(
  stores: Register,
  payment: CryptoPaymentDocument,
  steps: readonly DepositStep[],
  transition: Audited,
  session: ClientSession,
): Promise<Movement[]> {
  if (steps.length === 0) return [];
  const rows = await stores.movements.forResource(payment._id, session);
  const context = { stores, payment, transition, session };
  const moved: Movement[] = [];
  for (const [index, step] of steps.entries()) {
    const deposit = payment.deposits.find(({ key }) => key === step.deposit);
    if (deposit === undefined) throw new Error(`The payment has no deposit ${step.deposit}.`);
    const order = payment.version + index / (steps.length + 1);
    const row = findDepositMovement(rows, deposit);
    if (row === undefined) moved.push(await insertReceived(context, { step, deposit, order }));
    else moved.push(...(await changeReceived(context, { step, deposit, order }, row)));
  }
  return moved;
}

/** Inserts the movement of a deposit that is credited, or held. */
async function insertReceived(context: Context, changed: Changed): Promise<Movement> {
  const { stores, payment, transition, session } = context;
  const { step, deposit } = changed;
  const { key, amount, transaction_id: bank_reference } = deposit;
  if (step.step !== 'credited' && step.step !== 'held') {
    throw new Error(`The deposit ${key} has no movement to change.`);
  }
  const currency = readCurrency(payment, deposit);
  const money = { amount, currency, isFromSuspense: false, isReorged: false };
  const entry = buildDepositEntry(step.step, key, payment, money, { at: transition.at });
  const source = { kind: 'block', id: key } as const;
  const reason = step.step === 'held' ? step.reason : null;
  const report = { source, direction: 'in', bank_reference } as const;
  const posted = { reason, entry: operationId(entry) };
  const movement = await insertMovement(context, changed, report, posted);
  await stores.ledger.post(entry, session);
  return movement;
}

function readCurrency({ network, ...payment }: CryptoPaymentDocument, deposit: Deposit): string {
  return bookCurrency({ network, asset: deposit.asset ?? payment.asset });
}

/** Inserts a movement of all of a deposit. */
async function insertMovement(
  { stores, payment, transition: { at, clashes = 0 }, session }: Context,
  { deposit, order }: Changed,
  report: Pick<MovementReport, 'source' | 'direction' | 'bank_reference'>,
  { reason, entry }: Pick<Reported, 'reason'> & { entry: string },
): Promise<Movement> {
  const money = { amount: deposit.amount, currency: readCurrency(payment, deposit) };
  const reported = { resource: 'crypto_payment', at, order, reason, clashes } as const;
  const stored = { ...buildMovement(payment, { ...report, ...money }, reported), entry };
  await stores.movements.insert(stored, session);
  return toMovement(stored);
}

/** Changes a movement, with its entry. @returns it, and the one that sent it back */
async function changeReceived(
  context: Context,
  changed: Changed,
  row: MovementDocument,
): Promise<Movement[]> {
  const { stores, payment, transition, session } = context;
  const { at, audit } = transition;
  const { step, deposit } = changed;
  const sent: Movement[] = [];
  if (step.step !== 'noted') {
    const isReorged = row.reason === 'deposit_undone';
    const { amount, currency } = row;
    const money = { amount, currency, isFromSuspense: isFromSuspense(row), isReorged };
    const isSentBack = step.step === 'sent_back' && step.as === 'customer';
    const isRemoved = isReorged || (step.step === 'sent_back' && !isSentBack);
    const time = { at, offsets: isRemoved ? row.entry : undefined };
    const entry = buildDepositEntry(step.step, deposit.key, payment, money, time);
    if (isSentBack) {
      const id = `${payment._id}:${payment.transition}:${deposit.key}`;
      const { transaction_id: bank_reference } = step;
      const report = { source: { kind: 'act', id }, direction: 'out', bank_reference } as const;
      const posted = { reason: null, entry: operationId(entry) };
      sent.push(await insertMovement(context, changed, report, posted));
    }
    await stores.ledger.post(entry, session);
  }
  const { who: operator = null, why: reason = null } = audit ?? {};
  const by = sent[0]?.id;
  const decision = { operator, reason, at, ...(by === undefined ? {} : { by }) };
  const before = toMovement(row);
  const change = changeMovement(before, step, decision);
  await stores.movements.change(before, change, session);
  return [{ ...before, ...change }, ...sent];
}
