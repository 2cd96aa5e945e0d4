import { Contention } from '../mongo';
import { inTurn, type Turn } from './turns';

/** Most that are done together. */
const TOGETHER_MAX = 10;

/** Work on one book at a time. */
export interface GroupWork<Item, Answer> {
  /** Does all or none; undefined when none could be done with the others, and nothing was. */
  together: (items: readonly Item[]) => Promise<readonly Answer[] | undefined>;
  alone: (item: Item) => Promise<Answer>;
}

interface Asked<Item, Answer> {
  item: Item;
  by: number;
  /** Whether somebody whose turn it is does it, too. */
  isTaken: boolean;
  answer: Promise<Answer>;
  settle: (answer: Promise<Answer>) => void;
}

/**
 * Does work in turns, in which whoever has the turn does that of those who wait behind, too: so many
 * wait no longer than few. What can't be done with the others is done alone, one after the other.
 * @throws Contention when it found no turn; nothing was begun then
 */
export function createGroups<Item, Answer>(
  work: GroupWork<Item, Answer>,
  takeTurn: typeof inTurn = inTurn,
): (turn: Turn, item: Item) => Promise<Answer> {
  const waiting = new Map<string, Set<Asked<Item, Answer>>>();
  return async (turn, item) => {
    const asked = ask<Item, Answer>(item, turn.by);
    const line = waiting.get(turn.book) ?? new Set();
    waiting.set(turn.book, line.add(asked));
    try {
      return await takeTurn(turn, () => (asked.isTaken ? asked.answer : lead(work, asked, line)));
    } catch (error) {
      // Somebody does it, though it has waited too long for a turn of its own.
      if (error instanceof Contention && asked.isTaken) return await asked.answer;
      throw error;
    } finally {
      line.delete(asked);
      if (line.size === 0) waiting.delete(turn.book);
    }
  };
}

function ask<Item, Answer>(item: Item, by: number): Asked<Item, Answer> {
  let settle: Asked<Item, Answer>['settle'] = () => undefined;
  const answer = new Promise<Answer>((resolve) => {
    settle = resolve;
  });
  // Whoever asked hears of a failure in its own turn, which may come later.
  answer.catch(() => undefined);
  return { item, by, isTaken: false, answer, settle };
}

/** Does the work of one, and of those that wait behind it, the earliest first. */
async function lead<Item, Answer>(
  { together, alone }: GroupWork<Item, Answer>,
  first: Asked<Item, Answer>,
  line: ReadonlySet<Asked<Item, Answer>>,
): Promise<Answer> {
  const others = [...line].filter((one) => one !== first && !one.isTaken);
  const group = [first, ...others.sort((a, b) => a.by - b.by).slice(0, TOGETHER_MAX - 1)];
  for (const one of group) one.isTaken = true;
  const items = group.map(({ item }) => item);
  const made = group.length > 1 ? together(items) : Promise.resolve(undefined);
  let before: Promise<unknown> = made;
  for (const [place, one] of group.entries()) {
    const since = before.catch(() => undefined);
    const answerOf = async () => {
      const answers = await made;
      if (answers !== undefined) return answerAt(answers, place);
      await since;
      return await alone(one.item);
    };
    one.settle(answerOf());
    before = one.answer;
  }
  // The turn goes on until all is done.
  await before.catch(() => undefined);
  return await first.answer;
}

function answerAt<Answer>(answers: readonly Answer[], place: number): Answer {
  const [answer] = answers.slice(place, place + 1);
  if (answer === undefined) throw new RangeError('Those done together have an answer each.');
  return answer;
}
