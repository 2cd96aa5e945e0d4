import {
  ACKNOWLEDGE,
  FINDING_REMEDIES,
  findRemedy,
  listRows,
  type REMEDIES,
} from '../../src/domain/remedies';
import type { run } from '../cli/cli';
import { createRandom } from '../support/random';
import type { About, Answer, Held, ModelBank } from './robot-bank';

type Outcome = Awaited<ReturnType<typeof run>>;

interface OperatorPlace {
  /** Runs the command line with `--json`. */
  cli: (...args: string[]) => Promise<Outcome>;
  bank: ModelBank;
  seed: number;
  connector: string;
  account_id: string;
  created: readonly About[];
  done: string[];
}

interface Attention {
  id: string;
  resource: keyof typeof REMEDIES;
  resource_id: string;
  reason: string;
}

export type Operator = ReturnType<typeof createOperator>;

/** Codes by which a state refuses an act, so that the next row is right. */
const REFUSED = ['wrong_state', 'money_in_suspense', 'attention_not_found', 'line_changed'];

/**
 * An operator who knows nothing but the rows of the remedies and what `--json` prints: it asks the
 * bank the question of a row, and runs the commands of its answer.
 */
export function createOperator(place: OperatorPlace) {
  const { cli, bank, seed, connector, account_id, created, done } = place;

  // biome-ignore lint/suspicious/noExplicitAny: it reads into whatever is printed
  const print = async (...args: string[]): Promise<any> => {
    const { exit, stdout, stderr } = await cli(...args);
    if (exit !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
    return JSON.parse(stdout);
  };

  /** Picks of a choice `a|b` by the seed, whenever it is asked. */
  const choose = (word: string, at: string): string => {
    const options = word.split('|');
    const hash = [...at].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) | 0, seed);
    return createRandom(hash).pick(options);
  };

  /** @returns whether it was done; where the state refuses it, it was not */
  const act = async (
    line: string,
    values: Record<string, string | number | undefined>,
  ): Promise<boolean> => {
    const words = line.split(' ').map((word) => {
      const filled = word.replace(/[A-Z]{2,}/g, (name) => String(values[name] ?? name));
      return filled.includes('|') ? choose(filled, `${line} ${created.length}`) : filled;
    });
    const missing = words.find((word) => /^[A-Z]{2,}$/.test(word) && values['CURRENCY'] !== word);
    if (missing !== undefined) return false;
    const by = ['--operator', 'ana', '--reason', 'The bank says so.'];
    const { exit, stderr } = await cli(...words, ...by);
    const code = exit === 0 ? undefined : JSON.parse(stderr).error.code;
    done.push(`${words.join(' ')}: ${code ?? 'done'}`);
    if (code !== undefined && !REFUSED.includes(code)) throw new Error(`${words}: ${stderr}`);
    return code === undefined;
  };

  /** Follows the rows of an answer about a movement, or about the whole. */
  const follow = async (
    rows: ReturnType<typeof listRows>,
    answer: Answer | undefined,
    values: Record<string, string | undefined>,
  ): Promise<boolean> => {
    const isNamed = values['MOVEMENT'] !== undefined;
    const own = rows.filter(
      (row) => row.if === answer?.if && (isNamed || !row.run.join().includes('MOVEMENT')),
    );
    for (const { run } of own) {
      const facts = { ...values, AMOUNT: answer?.amount, REFERENCE: answer?.reference };
      const [first, ...more] = run;
      if (first === undefined || !(await act(first, facts))) continue;
      for (const line of more) await act(line, facts);
      return true;
    }
    return false;
  };

  const shared = {
    ...{ CONNECTOR: connector, ENV: 'sandbox', ACCOUNT: account_id, BALANCE: 'main' },
    CURRENCY: 'EUR',
  };

  const remedy = async (row: Attention): Promise<void> => {
    const found = findRemedy(row.resource, row.reason);
    if (found === undefined) throw new Error(`${row.reason} of a ${row.resource} has no remedy.`);
    const { resource_id: id } = row;
    const values = { ...shared, ID: id, ATTENTION: row.id };
    const listed = await print('movement', 'list', '--open', '--resource', id);
    const held: Held[] = listed.data;
    const rows = listRows(found);
    let isDone = false;
    for (const movement of held) {
      if (found.ask === undefined) continue;
      const answer = bank.answer(found.ask, id, movement);
      done.push(`${row.reason} ${movement.id}: ${answer?.if}`);
      isDone = (await follow(rows, answer, { ...values, MOVEMENT: movement.id })) || isDone;
    }
    if (held.length === 0 && found.ask !== undefined) {
      const answer = bank.answer(found.ask, id);
      done.push(`${row.reason}: ${answer?.if}`);
      isDone = await follow(rows, answer, values);
    }
    if (!isDone) await act(ACKNOWLEDGE, values);
  };

  const listAttention = async (): Promise<Attention[]> => {
    const { data } = await print('attention', 'list', '--limit', '1000');
    return data.filter((row: Attention) => created.some(({ id }) => id === row.resource_id));
  };

  /** Follows the rows of what a reconciled day has on one side only. @returns that day */
  const reconcile = async () => {
    const day = await print('reconciliation', 'show', '--connector', connector, '--env', 'sandbox');
    for (const { line, entry } of day.different) {
      const values = { ...shared, LINE: line.id, ENTRY: entry.entry_id };
      const answer = bank.answer('line', line.bank_reference);
      await follow(listRows(FINDING_REMEDIES.different), answer, values);
    }
    for (const line of day.theirs_only) {
      const answer = bank.answer('line', line.bank_reference);
      done.push(`unmatched ${line.id}: ${answer?.if}`);
      await follow(listRows(FINDING_REMEDIES.unmatched), answer, { ...shared, LINE: line.id });
    }
    return day;
  };

  return {
    print,
    /** Does once what is listed. @returns what was left to do before */
    work: async () => {
      const attention = await listAttention();
      for (const row of attention) await remedy(row);
      const suspense = (await print('movement', 'list', '--open', '--connector', connector)).data;
      const { ours_only, theirs_only, different, closed } = await reconcile();
      const reasons = attention.map(({ resource_id, reason }) => [resource_id, reason]);
      return { attention: reasons, suspense, ours_only, theirs_only, different, closed };
    },
    /** Imports files of the bank; one that comes too early is imported after the next. */
    importAll: async (files: readonly string[]): Promise<void> => {
      const waiting = [...files];
      for (let tries = 0; waiting.length > 0; tries += 1) {
        if (tries > files.length ** 2) throw new Error(`No statement follows: ${waiting}`);
        const [file = ''] = waiting.splice(0, 1);
        const source = ['--connector', connector, '--env', 'sandbox'];
        const { exit, stderr } = await cli('statement', 'import', file, ...source);
        const code = exit === 0 ? undefined : JSON.parse(stderr).error.code;
        done.push(`import ${file}: ${code ?? 'done'}`);
        if (code === 'statement_gap') waiting.push(file);
        else if (code !== undefined) throw new Error(stderr);
      }
    },
  };
}
