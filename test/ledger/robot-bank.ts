import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PayoutAnswer } from '../../connectors/contract/activities';
import type { BankResource, CallbackName } from '../../src/domain/callback/callback';
import type { Direction } from '../../src/domain/movement/movement';
import { signPayload } from '../../src/webhooks/signature';
import { type CamtEntry, camt, TEST_IBAN, txDtls } from '../support/camt';
import { call, eventually } from '../support/http';
import type { Random } from '../support/random';
import { scriptedBank } from '../support/scripted-bank';

export interface About {
  resource: BankResource;
  id: string;
}

/** Money that the bank really moved. */
interface Transfer extends About {
  direction: Direction;
  amount: number;
  currency: string;
  /** The bank's reference, of a part with its place: `REF#1.2`. */
  name: string;
  /** It went back since. */
  isBack?: true;
  /** No callback reports it. */
  isUnreported?: true;
}

export interface Money {
  amount: number;
  currency?: string;
}

type Facts = Money & { name?: string; dispute_id?: string; fee?: number };

/** Answer to a question of a remedy, with what its commands need. */
export interface Answer {
  if: string;
  amount?: number;
  reference?: string;
}

/** Movement in suspense, as the command line prints it. */
export interface Held {
  id: string;
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
  const answers = new Map<string, PayoutAnswer>();
  const sentBack = new Map<string, Transfer>();
  const started = randomUUID().slice(0, 8).toUpperCase();
  /** Reports that follow an instruction. */
  const own: Promise<void>[] = [];
  let names = 0;
  let reports = 0;
  let plannedPayout: PayoutAnswer['outcome'] = 'sent';
  let sendsBack = true;

  const name = () => {
    names += 1;
    return `B${started}${names}`;
  };

  const transfer = (
    about: About,
    direction: Direction,
    money: Money & { name?: string },
  ): Transfer => {
    const { resource, id } = about;
    const defaults = { name: name(), currency: 'EUR' };
    const moved: Transfer = { resource, id, direction, ...defaults, ...money };
    transfers.push(moved);
    return moved;
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
    { name: bank_reference, amount, currency = 'EUR', dispute_id, fee }: Facts,
    times = 1,
  ): Promise<void> => {
    reports += 1;
    const callback_id = `${started}-${reports}`;
    const named = { callback_id, occurred_at: new Date().toISOString(), bank_reference };
    const facts = { amount, currency, dispute_id, fee };
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
  });

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
      const found = ofResource(held?.resource_id ?? id).find(
        (each) =>
          held === undefined ||
          (held.names.includes(each.name) &&
            each.direction === held.direction &&
            each.amount === held.amount &&
            each.currency === held.currency),
      );
      if (found === undefined) return { if: 'never' };
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
      return taken === undefined
        ? { if: 'error' }
        : { if: 'taken', amount: taken.amount, reference: taken.name };
    },
    /** Asked by the bank's reference. */
    line: (reference) => {
      const found = transfers.find(({ name: own }) => own === reference);
      if (found?.isUnreported !== true) return undefined;
      return { if: 'merchant', amount: found.amount, reference };
    },
    by_hand: (id, held) => {
      if (held === undefined) return undefined;
      const { amount, currency } = held;
      transfer({ resource: 'payment', id }, 'out', { amount, currency });
      return { if: 'back' };
    },
  };

  const statements = createStatements(transfers, started);
  return {
    activities: bank.activities,
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
      const taken = transfer(about, 'out', { amount });
      chargebacks.push({ ...about, amount, name: taken.name });
      return taken;
    },
    /** Lets money of a payer come that no callback reports. */
    receiveUnreported: (about: About, amount: number): void => {
      transfer(about, 'in', { amount }).isUnreported = true;
    },
    /** Moves the same money the other way, without a report. */
    undo: (moved: Transfer): void => {
      moved.isBack = true;
      transfer(moved, moved.direction === 'in' ? 'out' : 'in', {
        ...{ amount: moved.amount, currency: moved.currency },
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
    /** Writes what it moved since its last statement. @returns files, in the order of the bank */
    writeStatements: statements.write,
    hasMoved: statements.hasMore,
    nameOf: (id: string) => ofResource(id)[0]?.name ?? name(),
    sumMoved: (currency: string) =>
      sumAmounts(transfers.filter((each) => each.currency === currency)),
    list: () => transfers,
    sum,
  };
}

const CURRENCIES = ['EUR', 'USD'];

/** Whether the parts of its entry are all on one statement. */
function isApart(transfer: Transfer, part: readonly Transfer[]): boolean {
  const reference = REFERENCE.exec(transfer.name)?.[1];
  if (reference === undefined || part.includes(transfer)) return true;
  return part.every(({ name }) => REFERENCE.exec(name)?.[1] !== reference);
}

function isBalanced(transfers: readonly Transfer[], currency: string): boolean {
  const own = transfers.filter((each) => each.currency === currency);
  return own.length > 0 && sumAmounts(own) === 0;
}

function sumAmounts(transfers: readonly Transfer[]): number {
  return transfers.reduce(
    (total, { amount, direction }) => total + (direction === 'in' ? amount : -amount),
    0,
  );
}

const REFERENCE = /^(.+)#1\.\d+$/;

/** Statements of the accounts of a bank, one after the other. */
function createStatements(transfers: readonly Transfer[], prefix: string) {
  const folder = mkdtempSync(join(tmpdir(), 'robot-'));
  const closings = new Map<string, number>();
  let written = 0;
  let files = 0;
  const writeOne = (currency: string, day: string, entries: readonly CamtEntry[]): string => {
    files += 1;
    const opening = closings.get(currency) ?? 0;
    closings.set(
      currency,
      entries.reduce((total, { amount }) => total + amount, opening),
    );
    const path = join(folder, `${files}.xml`);
    const id = `${prefix}-${files}`;
    writeFileSync(path, camt([{ id, iban: TEST_IBAN, currency, day, opening, entries }]));
    return path;
  };
  return {
    hasMore: () => written < transfers.length,
    write: (day: string, share = 1): string[] => {
      const waiting = transfers.slice(written);
      const part = waiting.slice(0, Math.ceil(waiting.length * share));
      const isWhole = part.length > 0 && waiting.every((each) => isApart(each, part));
      // A missing statement whose lines sum to 0 is not noticed, and could not come late.
      const fresh =
        isWhole && CURRENCIES.every((currency) => !isBalanced(part, currency)) ? part : waiting;
      written += fresh.length;
      return CURRENCIES.flatMap((currency) => {
        const own = fresh.filter((each) => each.currency === currency);
        const isDue = own.length > 0 || !closings.has(currency);
        return isDue ? [writeOne(currency, day, buildEntries(own))] : [];
      });
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Books the parts of one reference as one entry. */
function buildEntries(transfers: readonly Transfer[]): CamtEntry[] {
  const groups = new Map<string, Transfer[]>();
  for (const each of transfers) {
    const reference = REFERENCE.exec(each.name)?.[1] ?? each.name;
    groups.set(reference, [...(groups.get(reference) ?? []), each]);
  }
  return [...groups].map(([bank_reference, own]) => {
    const parts = own.map(({ id, direction, amount, resource }) => ({
      amount: direction === 'in' ? amount : -amount,
      // Payers do not know our ids.
      reference: resource === 'payment' ? 'NOTPROVIDED' : id.replaceAll('-', ''),
    }));
    const amount = parts.reduce((total, part) => total + part.amount, 0);
    const [only, ...more] = parts;
    if (more.length === 0) return { amount, bank_reference, reference: only?.reference ?? '' };
    const currency = own[0]?.currency ?? 'EUR';
    const details = parts.map((part) => txDtls(currency, part.amount, part.reference)).join('');
    return { amount, bank_reference, details };
  });
}
