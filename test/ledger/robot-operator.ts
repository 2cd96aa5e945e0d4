import {
  ACKNOWLEDGE,
  FINDING_REMEDIES,
  findRemedy,
  listRows,
  type REMEDIES,
} from '../../src/domain/operators/remedies';
import type { run } from '../cli/cli';
import { createRandom } from '../support/random';
import type { About, Answer, Held, ModelBank } from './robot-bank';
import type { ModelChain } from './robot-chain';

type Outcome = Awaited<ReturnType<typeof run>>;

interface OperatorPlace {
  cli: (...args: string[]) => Promise<Outcome>;
  bank: Pick<ModelBank, 'answer' | 'disputes' | 'explain' | 'findMissing'>;
  chain: Pick<ModelChain, 'ids' | 'answer'>;
  seed: number;
  connector: string;
  account_id: string;
  created: readonly About[];
  accounts: ReadonlyMap<string, string>;
  done: string[];
}

type Attention = { resource: keyof typeof REMEDIES } & Record<
  'id' | 'resource_id' | 'reason',
  string
>;

interface Entry {
  entry_id: string;
  resource: string;
  bank_reference: string | null;
}

export type Operator = ReturnType<typeof createOperator>;

/** Codes by which a state refuses an act, so that the next row is right. */
const REFUSED = [
  ...['wrong_state', 'money_in_suspense', 'attention_not_found', 'line_changed'],
  // Once all has left suspense, the entries of a resource may have the amount of a line.
  'amounts_differ',
];

/**
 * An operator who knows nothing but the rows of the remedies and what `--json` prints: it asks the
 * bank the question of a row, and runs the commands of its answer.
 */
export function createOperator(place: OperatorPlace) {
  const { cli, bank, chain, seed, connector, account_id, created, accounts, done } = place;
  /** Files that follow on one that is missing. */
  const waiting: string[] = [];

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
    const words = line.split(' ').flatMap((word) => {
      const filled = word.replace(/[A-Z]{2,}/g, (name) => String(values[name] ?? name));
      return filled.includes('|') ? choose(filled, `${line} ${created.length}`) : filled.split(' ');
    });
    const missing = words.find((word) => /^[A-Z]{2,}$/.test(word) && values['CURRENCY'] !== word);
    if (missing !== undefined) return false;
    const by = ['--operator', 'ana', '--reason', 'The bank says so.'];
    const isImport = line.startsWith('statement import');
    const { exit, stderr } = await cli(...words, ...(isImport ? [] : by));
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
    // The state refuses a row that is not its own, so that some try the last one first.
    if (choose('first|first|first|last', `${values['MOVEMENT']}`) === 'last') own.reverse();
    for (const { run } of own) {
      const { amount, reference, file, transaction, address } = answer ?? {};
      const named = { AMOUNT: amount, REFERENCE: reference, FILE: file };
      const facts = { ...values, ...named, TX: transaction, ADDRESS: address };
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

  const find = ({ resource, reason }: Pick<Attention, 'resource' | 'reason'>) => {
    const found = findRemedy(resource, reason);
    if (found === undefined) throw new Error(`${reason} of a ${resource} has no remedy.`);
    return found;
  };

  const ask = async (question: string, id: string, held?: Held): Promise<Answer | undefined> =>
    chain.ids.has(id) ? await chain.answer(question, id) : bank.answer(question, id, held);

  const remedy = async (row: Attention): Promise<void> => {
    const found = find(row);
    const { resource, resource_id: id } = row;
    const shown = resource === 'dispute' ? await print('dispute', 'show', id) : undefined;
    const PAYMENT: string | undefined = shown?.dispute.payment_id;
    const values = { ...shared, ID: id, ATTENTION: row.id, PAYMENT };
    const currency = accounts.get(id);
    if (currency !== undefined) {
      const answer = bank.findMissing(currency);
      done.push(`${row.reason} ${currency}: ${answer.if}`);
      if (await follow(listRows(found), answer, values)) return;
      return void (await act(ACKNOWLEDGE, values));
    }
    const listed = await print('movement', 'list', '--open', '--resource', id);
    const held: Held[] = listed.data;
    if (choose('oldest|newest', id) === 'newest') held.reverse();
    const rows = listRows(found);
    let isDone = false;
    // What is left keeps a reason, by which it is found again.
    const isOneByOne = choose('one|all', `how many of ${id}`) === 'one';
    for (const movement of held) {
      if (found.ask === undefined || (isOneByOne && isDone)) continue;
      const answer = await ask(found.ask, id, movement);
      done.push(`${row.reason} ${movement.id}: ${answer?.if}`);
      isDone = (await follow(rows, answer, { ...values, MOVEMENT: movement.id })) || isDone;
    }
    if (held.length === 0 && found.ask !== undefined) {
      const answer = await ask(found.ask, PAYMENT ?? id);
      done.push(`${row.reason}: ${answer?.if}`);
      isDone = await follow(rows, answer, values);
    }
    if (!isDone) await act(ACKNOWLEDGE, values);
  };

  const listAttention = async (): Promise<Attention[]> => {
    const { data } = await print('attention', 'list', '--limit', '1000');
    const payments = created.map(({ id }) => id);
    const own = new Set([...accounts.keys(), ...payments, ...bank.disputes, ...chain.ids]);
    return data.filter((row: Attention) => own.has(row.resource_id));
  };

  /** Follows the rows of what a reconciled day has on one side only. @returns that day */
  const reconcile = async () => {
    const day = await print('reconciliation', 'show', '--connector', connector, '--env', 'sandbox');
    const ours: Entry[] = day.ours_only;
    const decide = async (
      kind: 'different' | 'unmatched',
      { id: LINE }: { id: string },
      answer: Answer | undefined,
      entries: readonly Entry[],
    ) => {
      done.push(`${kind} ${LINE}: ${answer?.if}`);
      const wanted = kind === 'unmatched' ? answer?.references : undefined;
      if (entries.length < (wanted?.length ?? 0)) return;
      const ENTRY = entries.map(({ entry_id }) => entry_id).join(' ');
      await follow(listRows(FINDING_REMEDIES[kind]), answer, { ...shared, LINE, ENTRY });
    };
    for (const { line, entry } of day.different) {
      const answer = bank.explain({ ...line, amount: line.amount - entry.amount });
      const more = ours.filter(({ resource }) => resource === entry.resource);
      await decide('different', line, answer, [entry, ...more]);
    }
    for (const line of day.theirs_only) {
      const answer = bank.explain(line);
      const isMeant = (own: Entry) => answer?.references?.includes(own.bank_reference ?? '');
      await decide('unmatched', line, answer, ours.filter(isMeant));
    }
    return day;
  };

  /** Imports files of the bank, and those that had to wait for them. */
  const importAll = async (files: readonly string[]): Promise<void> => {
    waiting.push(...files);
    for (let tries = 0; tries < waiting.length; ) {
      const [file = ''] = waiting.splice(0, 1);
      const source = ['--connector', connector, '--env', 'sandbox'];
      const { exit, stderr } = await cli('statement', 'import', file, ...source);
      const code = exit === 0 ? undefined : JSON.parse(stderr).error.code;
      done.push(`import ${file}: ${code ?? 'done'}`);
      if (code === undefined) tries = 0;
      else if (code === 'statement_gap') tries = waiting.push(file) && tries + 1;
      else if (code !== 'sum_mismatch') throw new Error(stderr);
    }
  };

  return {
    print,
    importAll,
    /** Asks about a resource, and follows the answer, before there is a reason. */
    follow: async ({ resource, id }: About, reason: string): Promise<void> => {
      const found = find({ resource, reason });
      const answer = found.ask === undefined ? undefined : bank.answer(found.ask, id);
      done.push(`${reason} ${id}, before it is due: ${answer?.if}`);
      await follow(listRows(found), answer, { ...shared, ID: id });
    },
    /** Does once what is listed. @returns what was left to do before */
    work: async () => {
      const attention = await listAttention();
      for (const row of attention) await remedy(row);
      if (waiting.length > 0) await importAll([]);
      const listed = await print('movement', 'list', '--open', '--connector', connector);
      const suspense: Held[] = listed.data;
      const { ours_only, theirs_only, different, findings, closed } = await reconcile();
      const reasons = attention.map(({ resource_id, reason }) => ({ resource_id, reason }));
      const books = { ours_only, theirs_only, different, findings, closed };
      return { attention: reasons, suspense, waiting: [...waiting], ...books };
    },
  };
}
