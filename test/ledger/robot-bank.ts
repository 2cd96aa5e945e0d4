import { randomUUID } from 'node:crypto';
import type { DisputeReply, PayoutAnswer } from '../../connectors/contract/activities';
import type { BankResource, CallbackName, PayeeResult } from '../../src/domain/banks/callback';
import type { Direction } from '../../src/domain/banks/movement';
import type { OpenDisputeStatus } from '../../src/domain/dispute/dispute';
import { disputeId } from '../../src/store/disputes';
import { signPayload } from '../../src/webhooks/signature';
import { call, eventually } from '../support/http';
import type { Random } from '../support/random';
import { scriptedBank } from '../support/scripted-bank';
import { type Booking, createStatements, readEntryReference } from './robot-statements';

export interface About {
  resource: BankResource;
  id: string;
}

/** Money that the bank really moved. */
interface Transfer extends About, Booking {
  /** It went back since. */
  isBack?: true;
  /** No callback reports it. */
  isUnreported?: true;
  /** The bank has reported more. */
  isMisreported?: true;
  /** The bank takes it for itself. */
  isCharge?: true;
  /** Word of the bank about a correction. */
  plan?: 'final' | 'again';
}

export interface Money {
  amount: number;
  currency?: string;
}

type Facts = Partial<Money> & {
  name?: string;
  dispute_id?: string;
  dispute_status?: OpenDisputeStatus;
  fee?: number;
  result?: PayeeResult;
};

/** Answer to a question of a remedy, with what its commands need. */
export interface Answer {
  if: string;
  amount?: number;
  reference?: string;
  /** References of the movements that a line stands for. */
  references?: string[];
  file?: string;
  /** Transaction that has sent money back, and where to. */
  transaction?: string;
  address?: string;
}

/** Line of a statement, or what of it no entry explains. */
interface Unexplained {
  bank_reference: string | null;
  /** Minor units. */
  amount: number;
}

/** Movement in suspense, as the command line prints it. */
export interface Held {
  id: string;
  /** Minor units that are left. */
  in_suspense: number;
  names: string[];
  direction: Direction;
  amount: number;
  currency: string;
  resource_id: string;
}

export type ModelBank = ReturnType<typeof createModelBank>;

interface BankPlace {
  url: string;
  connector: string;
  /** Signs its callbacks. */
  secret: string;
  random: Random;
}

/**
 * A bank that transfers money, and reports it as a seed says: also twice, otherwise, or not at all. What
 * it moved is on its statements, and what it answers is true.
 */
export function createModelBank({ url, connector, secret, random }: BankPlace) {
  const transfers: Transfer[] = [];
  const chargebacks: (About & { amount: number; name: string })[] = [];
  /** Payments of which it has money back by a dispute. */
  const disputed = new Set<string>();
  /** Our ids of its disputes. */
  const disputes = new Set<string>();
  const answers = new Map<string, PayoutAnswer>();
  const sentBack = new Map<string, Transfer>();
  const started = randomUUID().slice(0, 8).toUpperCase();
  /** Reports that follow an instruction. */
  const own: Promise<void>[] = [];
  const reported: { id: string; callback_id: string }[] = [];
  let names = 0;
  let reports = 0;
  let plannedPayout: PayoutAnswer['outcome'] = 'sent';
  let sendsBack = true;

  const name = () => {
    names += 1;
    return `B${started}${names}`;
  };

  const transfer = (
    { resource, id }: About,
    direction: Direction,
    more: Money & Partial<Transfer>,
  ): Transfer => {
    const reference = resource === 'payment' ? 'NOTPROVIDED' : id.replaceAll('-', '');
    const defaults = { name: name(), currency: 'EUR', reference };
    const moved: Transfer = { resource, id, direction, ...defaults, ...more };
    transfers.push(moved);
    return moved;
  };

  /** Plans what the bank keeps of a movement. */
  const planCharge = (amount: number): Pick<Booking, 'charge'> => {
    if (amount < 200 || !random.chance(0.15)) return {};
    return { charge: { amount: random.integer(1, 99), isNamed: random.chance(0.5) } };
  };

  /** Moves the same money the other way, without a report. */
  const undo = (moved: Transfer): Transfer => {
    moved.isBack = true;
    const { amount, currency } = moved;
    return transfer(moved, moved.direction === 'in' ? 'out' : 'in', { amount, currency });
  };

  const post = async (body: object): Promise<void> => {
    const raw = JSON.stringify(body);
    await eventually('a callback to be taken', async () => {
      const signature = signPayload(secret, raw, Math.floor(Date.now() / 1_000));
      const headers = { 'Connector-Signature': signature, 'Content-Type': 'application/json' };
      const answer = await call(url, 'POST', `/connectors/${connector}/callbacks`, {
        raw,
        headers,
      });
      if (answer.status !== 202 && answer.status < 500) throw new Error(answer.text);
      return answer.status === 202 && answer.body.status !== 'parked';
    });
  };

  const deliver = async (
    { resource, id }: About,
    event: CallbackName,
    { name: bank_reference, amount, currency = 'EUR', dispute_id, ...more }: Facts,
    times = 1,
  ): Promise<void> => {
    reports += 1;
    const callback_id = `${started}-${reports}`;
    reported.push({ id, callback_id });
    const named = { callback_id, occurred_at: new Date().toISOString(), bank_reference };
    const money = amount === undefined ? {} : { amount, currency };
    const { fee, result, dispute_status } = more;
    const facts = { ...money, dispute_id, fee, result, dispute_status };
    if (dispute_id !== undefined) disputes.add(disputeId(id, dispute_id));
    for (let time = 0; time < times; time += 1) {
      await post({ resource, resource_id: id, event, ...named, ...facts });
    }
  };

  const bank = scriptedBank({
    openSession: async ({ payment_id }) => ({
      ...{ outcome: 'opened', bank_reference: `S-${payment_id}` },
      session_url: `https://bank.example/${payment_id}`,
    }),
    reversePayment: async ({ payment_id: id, instruction_id, amount, currency }) => {
      const about = { resource: 'payment', id } as const;
      if (!sendsBack) return { outcome: 'refused', code: 'no', message: 'It is too late.' };
      const back = sentBack.get(instruction_id) ?? transfer(about, 'out', { amount, currency });
      if (!sentBack.has(instruction_id)) own.push(deliver(about, 'reversed', back));
      sentBack.set(instruction_id, back);
      return { outcome: 'accepted', bank_reference: back.name };
    },
    sendRefund: async ({ refund_id }) => ({
      ...{ outcome: 'accepted', bank_reference: `R-${refund_id}` },
    }),
    sendPayout: async ({ payout_id: id, amount }) => {
      const answer = answers.get(id) ?? takePayout(id, amount);
      answers.set(id, answer);
      return answer;
    },
    lookUpPayout: async ({ payout_id }) => answers.get(payout_id) ?? { outcome: 'not_found' },
    submitEvidence: async () => answerDispute(),
    acceptDispute: async () => answerDispute(),
  });

  function answerDispute(): DisputeReply {
    if (random.chance(0.7)) return { outcome: 'accepted' };
    return { outcome: 'refused', code: 'no', message: 'It is too late.' };
  }

  function takePayout(id: string, amount: number): PayoutAnswer {
    if (plannedPayout === 'refused')
      return { outcome: 'refused', code: 'AC04', message: 'Closed.' };
    if (plannedPayout === 'submitted') return { outcome: 'submitted', bank_reference: name() };
    const { name: bank_reference } = transfer({ resource: 'payout', id }, 'out', { amount });
    return { outcome: 'sent', bank_reference };
  }

  const ofResource = (id: string) => transfers.filter((each) => each.id === id);
  const sum = (id: string, direction: Direction) =>
    ofResource(id)
      .filter((each) => each.direction === direction && each.currency === 'EUR')
      .reduce((total, { amount }) => total + amount, 0);

  const ANSWERS: Record<string, (id: string, held: Held | undefined) => Answer | undefined> = {
    money: (id, held) => {
      const own = ofResource(held?.resource_id ?? id);
      const found = held === undefined ? own[0] : own.find((each) => isHeld(each, held));
      if (found === undefined) return { if: 'never' };
      // Of what it has reported too high, the rest never moved.
      const isRest = held !== undefined && held.in_suspense === held.amount - found.amount;
      if (isRest && held.in_suspense > 0) return { if: 'never' };
      if (found.isBack) return { if: 'back' };
      return { if: found.direction === 'in' ? 'came' : 'sent', amount: found.amount };
    },
    outcome: (id) => {
      const [sent, back] = [sum(id, 'out'), sum(id, 'in')];
      if (sent === 0) return { if: 'not_executed' };
      return back === 0 ? { if: 'executed' } : { if: 'back', amount: back };
    },
    dispute: (id) => {
      const at = chargebacks.findIndex((each) => each.id === id);
      const [taken] = at < 0 ? [] : chargebacks.splice(at, 1);
      if (taken === undefined) return { if: disputed.has(id) ? 'counted' : 'error' };
      disputed.add(id);
      return { if: 'taken', amount: taken.amount, reference: taken.name };
    },
    correction: (_id, held) => {
      const found = transfers.find(({ name: own }) => held?.names.includes(own));
      if (found?.plan !== 'again') return { if: 'final' };
      if (!found.isBack) undo(found);
      return { if: 'again' };
    },
    by_hand: (id, held) => {
      if (held === undefined) return undefined;
      const { amount, currency } = held;
      transfer({ resource: 'payment', id }, 'out', { amount, currency });
      return { if: 'back' };
    },
  };

  /** Explains a line, or what of it no entry explains. */
  const explain = ({ bank_reference, amount }: Unexplained): Answer | undefined => {
    const own = transfers.filter((each) => readEntryReference(each) === bank_reference);
    const [found, ...more] = own;
    if (found === undefined) return undefined;
    if (more.length > 0) return { if: 'ours', references: own.map((each) => each.name) };
    const withheld = found.isCharge ? found.amount : (found.charge?.amount ?? 0);
    if (withheld === Math.abs(amount)) return { if: 'charge' };
    if (found.isMisreported) return { if: 'ours' };
    const reference = found.name;
    return found.isUnreported ? { if: 'merchant', amount: found.amount, reference } : undefined;
  };

  const statements = createStatements(transfers, started, random);
  return {
    activities: bank.activities,
    disputes,
    transfer,
    name,
    /** Reports once, or twice. */
    report: (about: About, event: CallbackName, facts: Facts) =>
      deliver(about, event, facts, random.chance(0.25) ? 2 : 1),
    close: async (): Promise<void> => {
      statements.close();
      await Promise.all(own);
    },
    /** Takes money of a payment back. */
    reverse: (about: About, amount: number): Transfer => {
      const taken = transfer(about, 'out', {
        amount,
        ...(random.chance(0.5) ? { isReversal: true } : {}),
      });
      chargebacks.push({ ...about, amount, name: taken.name });
      return taken;
    },
    dispute: (about: About, { amount, fee }: { amount: number; fee: number }): Transfer => {
      disputed.add(about.id);
      return transfer(about, 'out', { amount, ...buildCharge(fee) });
    },
    /** Lets money of a payer come that no callback reports. */
    receiveUnreported: (about: About, amount: number): void => {
      transfer(about, 'in', { amount }).isUnreported = true;
    },
    undo,
    /** Moves money and keeps a part of it, as it often does. */
    transferWithCharge: (about: About, direction: Direction, money: Money & { name?: string }) =>
      transfer(about, direction, {
        ...money,
        ...(money.name === undefined ? planCharge(money.amount) : {}),
      }),
    /** Corrects what it has booked, for good or until it books it again. */
    correct: (about: About, direction: Direction, amount: number): Transfer =>
      transfer(about, direction, {
        ...{ amount, isReversal: true, plan: random.pick(['final', 'again'] as const) },
      }),
    /** Books at once what it has corrected, and says so whenever it is asked. */
    bookAgain: (corrected: Transfer): Transfer => {
      corrected.plan = 'again';
      return undo(corrected);
    },
    /** Takes money for itself. */
    charge: (amount: number, isNamed: boolean): void => {
      transfer({ resource: 'payment', id: connector }, 'out', {
        ...{ amount, isCharge: true, reference: 'NOTPROVIDED' },
        code: isNamed ? 'PMNT.MCOP.CHRG' : 'PMNT.MDOP.OTHR',
      });
    },
    /** Says what the next payout meets. */
    planPayout: (outcome: PayoutAnswer['outcome']): void => {
      plannedPayout = outcome;
    },
    refuseReversals: (): void => {
      sendsBack = false;
    },
    /** Answers a question of a remedy about a resource, or about a movement of it. */
    answer: (question: string, id: string, held?: Held): Answer | undefined =>
      ANSWERS[question]?.(id, held),
    /** Explains a line, or what of it no entry explains. */
    explain,
    /** Gives what is missing of an account. */
    findMissing: (currency: string): Answer => {
      const file = statements.findMissing(currency);
      return file === undefined ? { if: 'none' } : { if: 'file', file };
    },
    /** Writes what it moved since its last statement. @returns files, in the order of the bank */
    writeStatements: statements.write,
    /** Writes notifications of it. @returns files */
    announce: statements.announce,
    hasMoved: statements.hasMore,
    /** Lists callbacks about a resource. */
    listReported: (id: string) =>
      reported.filter((each) => each.id === id).map(({ callback_id }) => callback_id),
    nameOf: (id: string) => ofResource(id)[0]?.name ?? name(),
    sumMoved: (currency: string) =>
      sumAmounts(transfers.filter((each) => each.currency === currency)),
    list: () => transfers,
    sum,
  };
}

/** Adds the fee of a dispute to the line of its money. */
export function buildCharge(amount: number): Pick<Booking, 'charge'> {
  return amount === 0 ? {} : { charge: { amount, isNamed: false } };
}

/** Whether a movement in suspense is this one, of which the bank may have reported too much. */
function isHeld(transfer: Transfer, held: Held): boolean {
  const { name, direction, amount, currency, isMisreported } = transfer;
  const isNamed = held.names.includes(name) && held.direction === direction;
  const isMeant = isMisreported === true || held.amount === amount;
  return isNamed && held.currency === currency && isMeant;
}

/** Without what the bank keeps for itself. */
function sumAmounts(transfers: readonly Transfer[]): number {
  return transfers.reduce((total, { amount, direction, isCharge }) => {
    if (isCharge) return total;
    return total + (direction === 'in' ? amount : -amount);
  }, 0);
}
