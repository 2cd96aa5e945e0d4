import { type Answering, names, type Passed, passOn, type Received, startProxy } from './proxy';

export type Fault = keyof typeof FAULTS;
export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>;

/** `writes`: neither a GET nor a look-up. */
interface Calls {
  ids: readonly string[];
  of: 'all' | 'writes';
}

interface Rule {
  concerns: (request: Received) => boolean;
  answer: Answering;
}

export async function startFaultProxy(target: string, port = 0) {
  const bank = target.replace(/\/+$/, '');
  const rules = new Set<Rule>();
  const toBank = (request: Received) => passOn(bank, request);
  const proxy = await startProxy(port, async (request) => {
    const rule = [...rules].find(({ concerns }) => concerns(request));
    return rule === undefined ? await toBank(request) : await rule.answer(request);
  });
  return {
    ...proxy,
    arm: (fault: Fault, { ids, of }: Calls) => {
      let hits = 0;
      const rule: Rule = {
        concerns: (request) => (of === 'all' || isWrite(request)) && names(request, ids),
        answer: async (request) => {
          hits += 1;
          const make: MakeFault = FAULTS[fault];
          return await make(request, toBank);
        },
      };
      rules.add(rule);
      return { hits: () => hits, clear: () => void rules.delete(rule) };
    },
    /** Holds the first write that names one of the IDs before the bank has it. */
    hold: (ids: readonly string[]) => {
      let release = () => {};
      let reach = () => {};
      const released = new Promise<void>((done) => (release = done));
      const reached = new Promise<void>((done) => (reach = done));
      const answer: Answering = async (request) => {
        rules.delete(rule);
        reach();
        await released;
        return await toBank(request);
      };
      const concerns = (request: Received) => isWrite(request) && names(request, ids);
      const rule: Rule = { concerns, answer };
      rules.add(rule);
      return {
        reached,
        release: () => {
          rules.delete(rule);
          release();
        },
      };
    },
    /** Repeats the page that has an ID once. */
    repeatPage: (id: string) => {
      let page: { path: string; answer: Passed } | undefined;
      let isRepeated = false;
      const rule: Rule = {
        // A look-up names the ID; the page of a list has it in its answer.
        concerns: (request) => request.method === 'GET' && !names(request, [id]),
        answer: async (request) => {
          const path = request.path.split('?', 1)[0] ?? '';
          if (page?.path === path) {
            rules.delete(rule);
            isRepeated = true;
            return page.answer;
          }
          const answer = await toBank(request);
          if (page === undefined && names(answer, [id])) page = { path, answer };
          return answer;
        },
      };
      rules.add(rule);
      return {
        isRead: () => page !== undefined,
        isRepeated: () => isRepeated,
        clear: () => void rules.delete(rule),
      };
    },
  };
}

/** @see docs/connectors.md#instructions-over-http */
const LOOK_UP = /\/instructions\/lookUp\w+$/;

function isWrite({ method, path }: Received): boolean {
  return method !== 'GET' && method !== 'HEAD' && !LOOK_UP.test(path);
}

type MakeFault = (
  request: Received,
  toBank: (request: Received) => Promise<Passed>,
) => Promise<Passed | undefined>;

/**
 * - `cut_before`, `cut_after`: the connection ends before the bank has the call, or after it has
 *   acted
 * - `unavailable`, `limited`, `garbage`: the bank answers 503, 429, or no JSON, and does nothing
 * - `fails_after`: the bank acts, and answers 500
 * - `quotes`, `quotes_code`: the bank refuses with 422, and quotes the request
 */
const FAULTS = {
  cut_before: async () => undefined,
  cut_after: async (request, toBank) => {
    await toBank(request);
    return undefined;
  },
  unavailable: async () => answerJson(503, { code: 'unavailable' }),
  limited: async () => answerJson(429, { code: 'too_many_requests' }),
  garbage: async () => ({
    ...{ status: 200, headers: { 'Content-Type': 'text/html' } },
    body: Buffer.from('<html>Please sign in.</html>'),
  }),
  fails_after: async (request, toBank) => {
    await toBank(request);
    return answerJson(500, { code: 'internal' });
  },
  quotes: async ({ body }) => {
    const message = `Not accepted: ${body.toString('utf8')}`;
    return answerJson(422, { code: 'invalid', message, error: message, detail: message });
  },
  quotes_code: async ({ body }) => answerJson(422, { code: body.toString('utf8'), message: 'No.' }),
} satisfies Record<string, MakeFault>;

function answerJson(status: number, body: object): Passed {
  const headers = { 'Content-Type': 'application/json' };
  return { status, headers, body: Buffer.from(JSON.stringify(body)) };
}
