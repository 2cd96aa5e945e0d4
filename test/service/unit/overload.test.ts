import { createInSlot } from '../../../src/dashboard/frame/form';
import { Refusal, unavailable } from '../../../src/domain/errors';
import { createConnectors } from '../../../src/routing';
import { createWindows } from '../../../src/service/account-windows';
import { createQueues, type Leave } from '../../../src/service/create-queues';
import { createSlots } from '../../../src/service/create-slots';
import { gate } from '../../support/gate';

describe('the slots of creates', () => {
  const REFUSED = {
    code: 'temporarily_unavailable',
    message: expect.stringContaining('Nothing was done'),
  };
  const holder = (account_id: string, connector?: string, livemode = false) => ({
    ...{ account_id, livemode, connector },
  });

  /** Takes as many slots as there are, up to `wanted`. @returns how many */
  async function take(
    slots: ReturnType<typeof createSlots>,
    who: ReturnType<typeof holder>,
    { wanted, opened }: { wanted: number; opened: Promise<unknown> },
  ) {
    let taken = 0;
    const begin = () => {
      taken += 1;
      return opened;
    };
    for (let i = 0; i < wanted; i += 1) slots(who, begin).catch(() => undefined);
    await new Promise(setImmediate);
    return taken;
  }

  test('a create over the limit is refused until another ends, and live has its own limit', async () => {
    const slots = createSlots(2);
    const { opened, release } = gate();
    const first = [slots(holder('a'), () => opened), slots(holder('b'), () => opened)];
    const never = jest.fn();
    await expect(slots(holder('c'), never)).rejects.toMatchObject(REFUSED);
    expect(never).not.toHaveBeenCalled();
    expect(await slots(holder('a', undefined, true), async () => 'live')).toBe('live');
    release();
    await Promise.all(first);
    expect(await slots(holder('c'), async () => 'later')).toBe('later');
  });

  test('a create that fails frees its slot', async () => {
    const slots = createSlots(1);
    const broken = slots(holder('a'), () => Promise.reject(new Error('broken')));
    await expect(broken).rejects.toThrow('broken');
    expect(await slots(holder('a'), async () => 'next')).toBe('next');
  });

  test('one account never takes the last slots, and each other account gets some of them', async () => {
    const slots = createSlots(100);
    const { opened } = gate();
    expect(await take(slots, holder('greedy'), { wanted: 200, opened })).toBe(80);
    expect(await take(slots, holder('second'), { wanted: 200, opened })).toBe(3);
    const other = createSlots(100);
    expect(await take(other, holder('greedy'), { wanted: 200, opened })).toBe(80);
    expect(await take(other, holder('second'), { wanted: 8, opened })).toBe(3);
    expect(await take(other, holder('third'), { wanted: 8, opened })).toBe(3);
    expect(await take(other, holder('greedy'), { wanted: 1, opened })).toBe(0);
  });

  test('simulations have fewer slots than creates, and take none from them', async () => {
    const slots = createSlots(100);
    const { opened, release } = gate();
    const simulating = { ...holder('a'), simulates: true } as const;
    expect(await take(slots, simulating, { wanted: 20, opened })).toBe(8);
    expect(await take(slots, holder('a'), { wanted: 1, opened })).toBe(1);
    expect(await take(slots, holder('b'), { wanted: 1, opened })).toBe(1);
    const other = { ...holder('b'), simulates: true } as const;
    expect(await take(slots, other, { wanted: 20, opened })).toBe(1);
    release();
  });

  test('a slow bank leaves slots for other banks, also when many accounts wait for it', async () => {
    const slots = createSlots(100);
    const { opened } = gate();
    let waiting = 0;
    for (let i = 0; i < 50; i += 1) {
      waiting += await take(slots, holder(`a${i}`, 'slow'), { wanted: 10, opened });
    }
    expect(waiting).toBe(80);
    expect(await take(slots, holder('b', 'fast'), { wanted: 2, opened })).toBe(2);
  });

  test('an account whose creates get no answer has half as many slots, and one more with each answer', async () => {
    const slots = createSlots(100);
    const { opened, release } = gate();
    const outage = opened.then(() => {
      throw unavailable('The payment engine did not answer in time.', undefined);
    });
    outage.catch(() => undefined);
    await take(slots, holder('greedy'), { wanted: 60, opened: outage });
    release();
    await new Promise(setImmediate);
    expect(await takeAndRelease(slots, 'greedy')).toBe(30);
    expect(await takeAndRelease(slots, 'greedy')).toBe(60);
    expect(await takeAndRelease(slots, 'other')).toBe(3);
  });

  test('refusals for other reasons remove no slot', async () => {
    const slots = createSlots(100);
    const refuse = () => Promise.reject(new Refusal('invalid_request', 'No.'));
    await expect(slots(holder('a'), refuse)).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await takeAndRelease(slots, 'a')).toBe(80);
  });

  /** Takes the slots that an account gets at once, and answers each create. @returns how many */
  async function takeAndRelease(slots: ReturnType<typeof createSlots>, account: string) {
    const { opened, release } = gate();
    const taken = await take(slots, holder(account), { wanted: 100, opened });
    release();
    await new Promise(setImmediate);
    return taken;
  }

  function openWindows(most: number) {
    let at = 0;
    const windows = createWindows(most, () => at);
    const size = (account: string) => {
      let open = 0;
      while (open < most && windows.isOpen(account, open)) open += 1;
      return open;
    };
    const wait = (ms: number) => {
      at += ms;
    };
    return { ...windows, size, wait };
  }

  test('creates that fail together halve the window of an account once, down to four', () => {
    const { shrink, size, wait } = openWindows(100);
    for (let failed = 0; failed < 40; failed += 1) shrink('a', 40 - failed);
    expect(size('a')).toBe(20);
    wait(1_000);
    shrink('a', 20);
    expect(size('a')).toBe(10);
    for (let outage = 0; outage < 5; outage += 1) {
      wait(1_000);
      shrink('a', 1);
    }
    expect(size('a')).toBe(4);
    expect(size('b')).toBe(100);
  });

  test('each answer widens a window by one, up to its maximum', () => {
    const { shrink, grow, size } = openWindows(10);
    grow('a');
    expect(size('a')).toBe(10);
    shrink('a', 8);
    expect(size('a')).toBe(4);
    grow('a');
    grow('a');
    expect(size('a')).toBe(6);
    for (let answered = 0; answered < 9; answered += 1) grow('a');
    expect(size('a')).toBe(10);
  });
});

describe('the queues of creates', () => {
  const LIMITS = {
    alone: 10,
    nextToOthers: 2,
    burst: 1,
    waitingMax: 3,
    waitMsMax: 8_000,
    expectedMs: 1_000,
  };

  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  function setUp(limits = LIMITS) {
    const queues = createQueues({ create: limits, simulation: limits }, () => Date.now());
    const answers: string[] = [];
    const leaves = new Map<string, Leave>();
    const wait = async (ms: number) => {
      await jest.advanceTimersByTimeAsync(ms);
      return answers.splice(0);
    };
    /** Calls of an account, each of which notes whether it began. */
    const enter = async (
      account: string,
      names: string,
      kind: 'create' | 'simulation' = 'create',
    ) => {
      for (const name of names) {
        void queues.enter(account, kind).then((leave) => {
          answers.push(leave === null ? `${name} refused` : name);
          if (leave !== null) leaves.set(name, leave);
        });
      }
      return await wait(0);
    };
    const leave = async (name: string, counts = true) => {
      leaves.get(name)?.(counts);
      return await wait(0);
    };
    return { enter, leave, wait };
  }

  test('an account that is alone has ten calls at once, and the others wait', async () => {
    const { enter, leave } = setUp();
    expect(await enter('a', 'abcdefghijkl')).toEqual([...'abcdefghij']);
    expect(await leave('c')).toEqual(['k']);
  });

  test('calls next to another account begin in order, two at once, spread over their expected time', async () => {
    const { enter, leave, wait } = setUp();
    expect(await enter('other', 'o')).toEqual(['o']);
    expect(await enter('a', 'abcde')).toEqual(['a', 'e refused']);
    expect(await wait(499)).toEqual([]);
    expect(await wait(1)).toEqual(['b']);
    expect(await wait(3_000)).toEqual([]);
    expect(await leave('a')).toEqual(['c']);
    expect(await enter('other', 'p')).toEqual(['p']);
  });

  test('slow calls of an account delay its next ones, and fast calls speed them up', async () => {
    const { enter, leave, wait } = setUp();
    await enter('other', 'o');
    await enter('a', 'a');
    await wait(5_000);
    await enter('other', 'p');
    await leave('a');
    expect(await enter('a', 'bc')).toEqual(['b']);
    // 2 s of average, of which two at once take half each.
    expect(await wait(999)).toEqual([]);
    expect(await wait(1)).toEqual(['c']);
    await leave('b');
    await enter('a', 'd');
    expect(await wait(1_000)).toEqual(['d']);
    await leave('c');
    await enter('a', 'e');
    expect(await wait(874)).toEqual([]);
    expect(await wait(1)).toEqual(['e']);
  });

  test('a burst of calls begins together after a pause', async () => {
    const { enter, wait } = setUp({ ...LIMITS, nextToOthers: 4, burst: 2 });
    await enter('other', 'o');
    expect(await enter('a', 'abcd')).toEqual(['a', 'b']);
    expect([await wait(250), await wait(250)]).toEqual([['c'], ['d']]);
  });

  test('a refused call does not change the expected time', async () => {
    const { enter, leave, wait } = setUp();
    await enter('other', 'o');
    await enter('a', 'a');
    await leave('a', false);
    expect(await enter('a', 'b')).toEqual([]);
    expect(await wait(500)).toEqual(['b']);
  });

  test('a burst that began alone ends before more calls begin', async () => {
    const { enter, leave } = setUp();
    await enter('a', 'abcd');
    await enter('other', 'o');
    expect(await enter('a', 'e')).toEqual([]);
    expect([await leave('a'), await leave('b'), await leave('c')]).toEqual([[], [], ['e']]);
  });

  test('a call that waits too long is refused, and those behind it go on', async () => {
    const { enter, leave, wait } = setUp();
    await enter('other', 'o');
    expect(await enter('a', 'abc')).toEqual(['a']);
    expect(await wait(4_000)).toEqual(['b']);
    await enter('a', 'd');
    expect(await wait(4_000)).toEqual(['c refused']);
    await enter('other', 'p');
    expect(await leave('a')).toEqual(['d']);
  });

  test('each kind of call has its own queue, and an account is no neighbor after ten quiet seconds', async () => {
    const { enter, wait } = setUp();
    await enter('other', 'o', 'simulation');
    expect(await enter('a', 'abc')).toEqual(['a']);
    expect(await enter('a', 'd', 'simulation')).toEqual(['d']);
    await wait(9_999);
    expect(await enter('b', 'xyz')).toEqual(['x']);
    await wait(10_000);
    expect(await enter('b', 'uvw')).toEqual(['u', 'v', 'w']);
  });
});

describe('a create of the dashboard', () => {
  const connectors = createConnectors('sandbox', 'evm=eth_ethereum,acme=visa');
  const none = Object({ readCached: async () => new Map() });
  const stores = { routingRules: none, connectorPauses: none };
  const caller = { account_id: 'a', livemode: true };
  const request = {
    ...{ caller, idempotencyKey: 'k', canonical: '{}', requestId: 'r' },
    parseBody: () => ({}),
  };

  test('creates of the dashboard and of the API share the slots of the account', async () => {
    const takeSlot = createSlots(1);
    const create = jest.fn(async () => 'created');
    const createHere = () => createInSlot({ takeSlot, connectors, stores }, request, {}, create);
    const { opened, release } = gate();
    const byApi = takeSlot({ ...caller, connector: undefined }, () => opened);
    await expect(createHere()).rejects.toMatchObject({ code: 'temporarily_unavailable' });
    expect(create).not.toHaveBeenCalled();
    release();
    await byApi;
    expect(await createHere()).toBe('created');
  });

  test('a crypto settlement takes a slot of the connector that serves its asset', async () => {
    const takeSlot = jest.fn((_holder: unknown, work: () => Promise<string>) => work());
    const fields = { asset: 'ETH', network: 'ethereum' };
    const deps = { takeSlot: Object(takeSlot), connectors, stores };
    await createInSlot(deps, request, fields, async () => 'created');
    expect(takeSlot).toHaveBeenCalledWith({ ...caller, connector: 'evm' }, expect.anything());
  });
});
