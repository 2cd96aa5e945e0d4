import type { Db } from 'mongodb';
import { isDuplicateKey } from '../../src/base/mongo';
import { addDays, buildUnexplained, findUnexplained } from '../../src/domain/banks/statement';
import type { BankAccountDocument } from '../../src/store/bank-accounts';
import { openMadeStatements, openMadeTransfers } from '../../src/store/statements';
import type { Settings, Statements, Tools } from './definition';
import type { ConnectorProcess } from './process';

const HOUR_MS = 3_600_000;

/** From then on, what the bank has not explained is for an operator. */
const LATE_HOURS = 12;

/** Days for which a movement may show late: it is on the next statement then. */
const KNOWN_DAYS = 3;

/** Movements of a day, as one document holds them. */
const LINES_MAX = 100_000;

interface MakerDeps<S extends Settings> extends Pick<ConnectorProcess, 'connector' | 'stores'> {
  statements: Statements<S>;
  db: Db;
  tools: Tools<S>;
  livemode: boolean;
}

/**
 * Makes the statements of registered accounts for each day that is over, in order, and stores each
 * once: a day that is stored never changes.
 * @returns function that makes all that are due
 * @see docs/connectors.md#statements-of-a-balance
 */
export function createStatementMaker<S extends Settings>({
  statements: { readyHours, make, listTransfers },
  ...deps
}: MakerDeps<S>): () => Promise<boolean> {
  const { db, tools, connector, stores, livemode } = deps;
  const made = openMadeStatements(db);
  /** @returns whether the day after it may be due */
  const makeNext = async (bankAccount: BankAccountDocument): Promise<boolean> => {
    const { iban: account, currency, created_at, accepted } = bankAccount;
    const last = await made
      .find({ account, currency })
      .sort({ day: -1 })
      .limit(KNOWN_DAYS + 1)
      .toArray();
    const again = last[0]?.is_proved === false ? last.shift() : undefined;
    const [previous] = last;
    const next = previous === undefined ? created_at.slice(0, 10) : addDays(previous.day, 1);
    const day = again?.day ?? next;
    const since = new Date(last.at(-1)?.day ?? day);
    const end = new Date(addDays(day, 1));
    const hours = (tools.now().getTime() - end.getTime()) / HOUR_MS;
    if (hours < readyHours) return false;
    const known = new Set(last.flatMap(({ lines }) => lines.map((line) => line.bank_reference)));
    const isBooked = (reference: string) => known.has(reference);
    const opening = previous?.closing ?? null;
    const isCompared = hours < 24 || again !== undefined || opening === null;
    const period = { since, end, opening, isBooked, isCompared };
    const statement = await make({ account, currency, ...period }, tools);
    const { length } = statement.lines;
    if (length > LINES_MAX) throw new Error(`${day} has more than ${LINES_MAX} movements.`);
    const rest = findUnexplained(statement);
    if (rest !== 0 && accepted?.day === day && accepted.amount === rest) {
      statement.lines = [...statement.lines, buildUnexplained(day, rest)];
    }
    const is_proved = findUnexplained(statement) === 0;
    if (!is_proved && hours < LATE_HOURS) {
      throw new Error(`What ${account} has moved does not lead to its balance yet: ${day}.`);
    }
    const _id = `${account} ${currency} ${day}`;
    const made_at = tools.now().toISOString();
    const document = { _id, account, currency, day, ...statement, is_proved, made_at };
    try {
      await made.replaceOne({ _id, is_proved: false }, document, { upsert: true });
    } catch (error) {
      // Another process was faster.
      if (!isDuplicateKey(error)) throw error;
    }
    return is_proved;
  };
  const noteTransfers = async (): Promise<void> => {
    const transfers = openMadeTransfers(db);
    const read = new Set(await transfers.distinct('_id', { parts: { $exists: true } }));
    const isRead = (reference: string) => read.has(reference);
    for (const { bank_reference: _id, ...known } of (await listTransfers?.(isRead, tools)) ?? []) {
      await transfers.updateOne({ _id }, { $set: known }, { upsert: true });
    }
  };
  return async () => {
    const errors: unknown[] = [];
    for (const account of await stores.bankAccounts.list({ connector, livemode })) {
      try {
        while (await makeNext(account)) {
          // The days that a stop has left out follow.
        }
      } catch (error) {
        errors.push(error);
      }
    }
    await noteTransfers().catch((error: unknown) => errors.push(error));
    if (errors.length > 0) throw errors[0];
    return false;
  };
}
