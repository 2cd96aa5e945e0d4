import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DisputeReply, PayoutAnswer } from '../../connectors/contract/activities';
import type { BankResource, CallbackName, PayeeResult } from '../../src/domain/banks/callback';
import type { Direction } from '../../src/domain/banks/movement';
import type { OpenDisputeStatus } from '../../src/domain/dispute/dispute';
import { decimalMoney } from '../../src/domain/money/money';
import { disputeId } from '../../src/store/disputes';
import { signPayload } from '../../src/webhooks/attempt';
import { type CamtEntry, camt, TEST_IBAN, txDtls } from '../support/camt';
import { eventually } from '../support/eventually';
import { call } from '../support/http';
import type { Random } from '../support/random';
import { scriptedBank } from '../support/scripted-bank';

export interface About {
  resource: BankResource;
  id: string;
}

/** Money that the bank really moved. */
interface Transfer extends About, Booking {
  isBack?: true;
  /** No callback reports it. */
  isUnreported?: true;
  /** The bank has reported more. */
  isMisreported?: true;
  /** The bank takes it for itself. */
  isCharge?: true;
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
  transaction?: string;
  address?: string;
}

/** Line of a statement, or what of it no entry explains. */
interface Unexplained {
  bank_reference: string | null;
  amount: number;
}

/** Movement in suspense, as the command line prints it. */
export interface Held {
  id: string;
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
  const disputed = new Set<string>();
  const disputes = new Set<string>();
  const answers = new Map<string, PayoutAnswer>();
  const sentBack = new Map<string, Transfer>();
  const started = randomUUID().slice(0, 8).toUpperCase();
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

  const transfer = (about: About, direction: Direction, more: Money & Partial<Transfer>) => {
    const { resource, id } = about;
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
      const path = `/connectors/${connector}/callbacks`;
      const answer = await call(url, 'POST', path, { raw, headers });
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
      if (!sendsBack) return TOO_LATE;
      const back = sentBack.get(instruction_id) ?? transfer(about, 'out', { amount, currency });
      if (!sentBack.has(instruction_id)) own.push(deliver(about, 'reversed', back));
      sentBack.set(instruction_id, back);
      return { outcome: 'accepted', bank_reference: back.name };
    },
    sendRefund: async ({ refund_id: id }) => ({ outcome: 'accepted', bank_reference: `R-${id}` }),
    sendPayout: async ({ payout_id: id, amount }) => {
      const answer = answers.get(id) ?? takePayout(id, amount);
      answers.set(id, answer);
      return answer;
    },
    lookUpPayout: async ({ payout_id }) => answers.get(payout_id) ?? { outcome: 'not_found' },
    submitEvidence: async () => answerDispute(),
    acceptDispute: async () => answerDispute(),
  });

  const TOO_LATE = { outcome: 'refused', code: 'no', message: 'It is too late.' } as const;
  const answerDispute = (): DisputeReply =>
    random.chance(0.7) ? { outcome: 'accepted' } : TOO_LATE;

  function takePayout(id: string, amount: number): PayoutAnswer {
    if (plannedPayout === 'refused') return { ...TOO_LATE, code: 'AC04' };
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
    report: (about: About, event: CallbackName, facts: Facts) =>
      deliver(about, event, facts, random.chance(0.25) ? 2 : 1),
    close: async (): Promise<void> => {
      statements.close();
      await Promise.all(own);
    },
    reverse: (about: About, amount: number): Transfer => {
      const kind = random.chance(0.5) ? ({ isReversal: true } as const) : {};
      const taken = transfer(about, 'out', { amount, ...kind });
      chargebacks.push({ ...about, amount, name: taken.name });
      return taken;
    },
    dispute: (about: About, { amount, fee }: { amount: number; fee: number }): Transfer => {
      disputed.add(about.id);
      return transfer(about, 'out', { amount, ...buildCharge(fee) });
    },
    receiveUnreported: (about: About, amount: number): void => {
      transfer(about, 'in', { amount }).isUnreported = true;
    },
    undo,
    /** Moves money and keeps a part of it, as it often does. */
    transferWithCharge: (about: About, direction: Direction, money: Money & { name?: string }) => {
      const charge = money.name === undefined ? planCharge(money.amount) : {};
      return transfer(about, direction, { ...money, ...charge });
    },
    /** Corrects what it has booked, for good or until it books it again. */
    correct: (about: About, direction: Direction, amount: number): Transfer => {
      const plan = random.pick(['final', 'again'] as const);
      return transfer(about, direction, { amount, isReversal: true, plan });
    },
    /** Books at once what it has corrected, and says so whenever it is asked. */
    bookAgain: (corrected: Transfer): Transfer => {
      corrected.plan = 'again';
      return undo(corrected);
    },
    charge: (amount: number, isNamed: boolean): void => {
      const code = isNamed ? 'PMNT.MCOP.CHRG' : 'PMNT.MDOP.OTHR';
      transfer({ resource: 'payment', id: connector }, 'out', { amount, isCharge: true, code });
    },
    planPayout: (outcome: PayoutAnswer['outcome']): void => {
      plannedPayout = outcome;
    },
    refuseReversals: (): void => {
      sendsBack = false;
    },
    answer: (question: string, id: string, held?: Held) => ANSWERS[question]?.(id, held),
    explain,
    findMissing: (currency: string): Answer => {
      const file = statements.findMissing(currency);
      return file === undefined ? { if: 'none' } : { if: 'file', file };
    },
    /** Writes what it moved since its last statement. @returns files, in the order of the bank */
    writeStatements: statements.write,
    announce: statements.announce,
    hasMoved: statements.hasMore,
    listReported: (id: string) =>
      reported.filter((each) => each.id === id).map(({ callback_id }) => callback_id),
    nameOf: (id: string) => ofResource(id)[0]?.name ?? name(),
    sumMoved: (currency: string) =>
      sumAmounts(transfers.filter((each) => each.currency === currency)),
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

interface Booking {
  direction: Direction;
  /** Minor units, before what the bank keeps of it. */
  amount: number;
  currency: string;
  /** The bank's reference, of a part with its place: `REF#1.2`. */
  name: string;
  /** Name of our payouts and refunds; payers do not know our ids. */
  reference: string;
  code?: string;
  isReversal?: true;
  /** Minor units that the bank keeps of it, with or without saying so. */
  charge?: { amount: number; isNamed: boolean };
}

const CURRENCIES = ['EUR', 'USD'];

const REFERENCE = /^(.+)#1\.\d+$/;

/** Reference of the entry in which a part is booked. */
function readEntryReference({ name }: Pick<Booking, 'name'>): string {
  return REFERENCE.exec(name)?.[1] ?? name;
}

/** Whether the parts of its entry are all on one statement. */
function isApart(booking: Booking, part: readonly Booking[]): boolean {
  const reference = readEntryReference(booking);
  if (reference === booking.name || part.includes(booking)) return true;
  return part.every((each) => readEntryReference(each) !== reference);
}

interface Hole {
  currency: string;
  /** Absent: the bank has none, and has only left out a number. */
  path?: string;
  isLate?: true;
}

/**
 * Statements of the accounts of a bank, one after the other: also wrong, withheld, or with a number left
 * out, until an operator asks for what is missing.
 */
function createStatements(bookings: readonly Booking[], prefix: string, random: Random) {
  const folder = mkdtempSync(join(tmpdir(), 'robot-'));
  const accounts = new Map<string, { closing: number; sequence: number }>();
  const holes: Hole[] = [];
  const announced = new Set<string>();
  let written = 0;
  let notified = 0;
  let count = 0;

  const writeFile = (statement: object, message?: string): string => {
    count += 1;
    const path = join(folder, `${count}.xml`);
    const id = `${prefix}-${count}`;
    writeFileSync(path, camt([{ id, iban: TEST_IBAN, ...statement }], message ? { message } : {}));
    return path;
  };

  const writeStatement = (currency: string, day: string, entries: readonly CamtEntry[]) => {
    const none = { closing: 0, sequence: 0 };
    const { closing: opening, sequence: last } = accounts.get(currency) ?? none;
    const isFirst = last === 0;
    const hasHole = holes.some((hole) => hole.currency === currency);
    const sum = entries.reduce((total, { amount }) => total + amount, 0);
    const jumps = !isFirst && !hasHole && random.chance(0.1);
    if (jumps) holes.push({ currency });
    const sequence = last + (jumps ? 2 : 1);
    const closing = opening + sum;
    accounts.set(currency, { closing, sequence });
    const statement = { currency, day, opening, entries, sequence };
    const path = writeFile(statement);
    if (isFirst || jumps || hasHole) return [path];
    if (sum === 0 && random.chance(0.5)) {
      holes.push({ currency, path, isLate: true });
      return [];
    }
    if (!random.chance(0.1)) return [path];
    holes.push({ currency, path });
    return [writeFile({ ...statement, closing: closing + 1 })];
  };

  const listFresh = (share: number): readonly Booking[] => {
    const waiting = bookings.slice(written);
    const part = waiting.slice(0, Math.ceil(waiting.length * share));
    return part.length > 0 && waiting.every((each) => isApart(each, part)) ? part : waiting;
  };

  const listLate = (): string[] =>
    holes.flatMap((hole) => {
      if (!hole.isLate || hole.path === undefined) return [];
      holes.splice(holes.indexOf(hole), 1);
      return [hole.path];
    });

  return {
    hasMore: () => written < bookings.length || holes.some(({ isLate }) => isLate),
    write: (day: string, share = 1): string[] => {
      const fresh = listFresh(share);
      const late = fresh.length === 0 || random.chance(0.3) ? listLate() : [];
      written += fresh.length;
      const files = CURRENCIES.flatMap((currency) => {
        const own = fresh.filter((each) => each.currency === currency);
        if (own.length === 0 && accounts.has(currency)) return [];
        const isSum = (reference: string) => announced.has(reference) && random.chance(0.3);
        return writeStatement(currency, day, buildEntries(own, isSum));
      });
      return [...files, ...late];
    },
    /** Writes what it has neither announced nor on a statement. @returns files */
    announce: (day: string): string[] => {
      const fresh = bookings.slice(Math.max(written, notified));
      notified = bookings.length;
      for (const each of fresh) announced.add(readEntryReference(each));
      return CURRENCIES.flatMap((currency) => {
        const own = fresh.filter((each) => each.currency === currency);
        if (own.length === 0) return [];
        const entries = buildEntries(own, () => false);
        return [writeFile({ currency, day, entries }, 'camt.054.001.08')];
      });
    },
    /** Gives what is missing of an account, once. @returns undefined where there is none */
    findMissing: (currency: string): string | undefined => {
      const at = holes.findIndex((hole) => hole.currency === currency);
      return at < 0 ? undefined : holes.splice(at, 1)[0]?.path;
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Books the parts of one reference as one entry, or only as their sum. */
function buildEntries(
  bookings: readonly Booking[],
  isSum: (reference: string) => boolean,
): CamtEntry[] {
  const groups = new Map<string, Booking[]>();
  for (const each of bookings) {
    const reference = readEntryReference(each);
    groups.set(reference, [...(groups.get(reference) ?? []), each]);
  }
  return [...groups].map(([bank_reference, own]) => {
    const [only, ...more] = own;
    if (only !== undefined && more.length === 0) return buildEntry(only, bank_reference);
    const signed = own.map((each) => ({ ...each, amount: sign(each) }));
    const amount = signed.reduce((total, part) => total + part.amount, 0);
    const details = isSum(bank_reference)
      ? `<Btch><NbOfTxs>${own.length}</NbOfTxs></Btch>`
      : signed.map((each) => txDtls(each.currency, each.amount, each.reference)).join('');
    return { amount, bank_reference, details };
  });
}

const sign = ({ direction, amount }: Pick<Booking, 'direction' | 'amount'>) =>
  direction === 'in' ? amount : -amount;

function buildEntry(booking: Booking, bank_reference: string): CamtEntry {
  const { currency, reference, charge, code, isReversal } = booking;
  const amount = sign(booking) - (charge?.amount ?? 0);
  const text = charge?.isNamed
    ? `<Chrgs><Rcrd><Amt Ccy="${currency}">${decimalMoney(charge.amount, currency)}</Amt>` +
      '<CdtDbtInd>DBIT</CdtDbtInd><ChrgInclInd>true</ChrgInclInd></Rcrd></Chrgs>'
    : '';
  const kind = code === undefined ? {} : { code };
  const correction = isReversal === undefined ? {} : { reversal: true };
  return { amount, bank_reference, reference, more: text, ...kind, ...correction };
}
