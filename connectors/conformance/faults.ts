import { type Answering, names, type Passed, passOn, type Received, startProxy } from './proxy';

/**
 * Faults between connector and bank:
 * - `cut_before`, `cut_after`: the connection ends before the bank has the call, or after it has acted
 * - `unavailable`, `limited`, `garbage`: the bank answers 503, 429, or what is no JSON, and does nothing
 * - `fails_after`: the bank acts, and the answer is 500
 * - `quotes`: the bank refuses with 422, and its message quotes the request
 */
export type Fault =
  | 'cut_before'
  | 'cut_after'
  | 'unavailable'
  | 'limited'
  | 'garbage'
  | 'fails_after'
  | 'quotes';

export interface FaultProxy {
  url: string;
  /** Gives the calls that name an ID a fault, until it is cleared. */
  arm: (fault: Fault, calls: Calls) => Armed;
  /** Holds the first write that names an ID before the bank has it. */
  hold: (id: string) => Held;
  stop: () => Promise<void>;
}

/** Calls that name one of the IDs; of `writes` those that are neither a GET nor a look-up. */
interface Calls {
  ids: readonly string[];
  of: 'all' | 'writes';
}

interface Armed {
  /** Number of calls that had the fault. */
  hits: () => number;
  clear: () => void;
}

interface Held {
  /** Resolves when the first call is held. */
  reached: Promise<void>;
  /** Lets the calls go on. */
  release: () => void;
}

interface Rule extends Calls {
  answer: Answering;
}

/** Starts a proxy in front of a bank, which has no faults at first. */
export async function startFaultProxy(target: string, port = 0): Promise<FaultProxy> {
  const bank = target.replace(/\/+$/, '');
  const rules = new Set<Rule>();
  const toBank = (request: Received) => passOn(bank, request);
  const proxy = await startProxy(port, async (request) => {
    const rule = [...rules].find(
      ({ ids, of }) => (of === 'all' || isWrite(request)) && names(request, ids),
    );
    return rule === undefined ? await toBank(request) : await rule.answer(request);
  });
  return {
    ...proxy,
    arm: (fault, calls) => {
      let hits = 0;
      const rule: Rule = {
        ...calls,
        answer: async (request) => {
          hits += 1;
          return await FAULTS[fault](request, toBank);
        },
      };
      rules.add(rule);
      return { hits: () => hits, clear: () => void rules.delete(rule) };
    },
    hold: (id) => {
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
      const rule: Rule = { ids: [id], of: 'writes', answer };
      rules.add(rule);
      return {
        reached,
        release: () => {
          rules.delete(rule);
          release();
        },
      };
    },
  };
}

/** Instructions over HTTP are all posted. @see docs/connectors.md#instructions-over-http */
const LOOK_UP = /\/instructions\/lookUp\w+$/;

function isWrite({ method, path }: Received): boolean {
  return method !== 'GET' && method !== 'HEAD' && !LOOK_UP.test(path);
}

type MakeFault = (
  request: Received,
  toBank: (request: Received) => Promise<Passed>,
) => Promise<Passed | undefined>;

const FAULTS: Record<Fault, MakeFault> = {
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
};

function answerJson(status: number, body: object): Passed {
  const headers = { 'Content-Type': 'application/json' };
  return { status, headers, body: Buffer.from(JSON.stringify(body)) };
}
