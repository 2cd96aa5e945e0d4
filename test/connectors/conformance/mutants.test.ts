import { randomUUID } from 'node:crypto';
import { passOn, startProxy } from '../../../connectors/conformance/proxy';
import type { example } from '../../../connectors/example/example';
import { BankFailure, type DisputeInstruction, type Report } from '../../../connectors/kit';
import type { ConnectorDefinition } from '../../../connectors/kit/definition';
import { createGate } from '../../../src/base/gate';
import type { CheckReport } from '../../../src/service/banks/connector-check';
import { fullExample, quickExample, readReport, sendWithAnyCode } from './full-example';
import { type Activities, checkOnKit, listBroken, SECRET } from './setting';

type Example = typeof example;
type Definition = Example extends ConnectorDefinition<infer S> ? ConnectorDefinition<S> : never;
type Settings = Example extends ConnectorDefinition<infer S> ? S : never;

/** A connector with one broken promise, and the promises by which a check names it. */
interface Mutant {
  broken: string[];
  check: () => Promise<CheckReport>;
}

const settings = { EXAMPLE_KEY_FILE: SECRET };
type Change = NonNullable<Parameters<typeof checkOnKit<Settings>>[2]>;

/** Promises that a mutant may break by mistake. Checks of whole connectors are elsewhere. */
const OTHERS = ['payout.repeat', 'payout.callbacks', 'payout.private', 'callbacks.once'];

/** Wait for a report that a mutant never makes, which its check lasts. */
const SHORT_WAIT_MS = 8_000;

function mutate(broken: string[], change: Change, base: () => Definition = quickExample): Mutant {
  const only = [...broken, ...OTHERS];
  return { broken, check: () => checkOnKit(base(), settings, { ...change, only }) };
}

/** Replaces activities, given those of the connector. */
function mutateActivities(
  broken: string[],
  replace: (same: Required<Activities>) => Activities,
  base?: () => Definition,
): Mutant {
  const activities = (same: Activities) => ({ ...same, ...replace(same as Required<Activities>) });
  return mutate(broken, { activities }, base);
}

const getFull = () => fullExample as Definition;

type Rename = (report: Report, index: number, cursor: string | null) => string;

/** Renames the callbacks of every report, in webhooks and in the list of changes. */
function renameCallbacks(rename: Rename) {
  const renameAll = (reports: Report[], cursor: string | null = null) =>
    reports.map((report, index) => ({
      ...report,
      callback: { ...report.callback, callback_id: rename(report, index, cursor) },
    }));
  return ({ webhook, poll, ...definition }: Definition): Definition => ({
    ...definition,
    ...(webhook && {
      webhook: {
        ...webhook,
        read: async (...args: Parameters<typeof webhook.read>) =>
          renameAll(await webhook.read(...args)),
      },
    }),
    ...(poll && {
      poll: {
        ...poll,
        read: async (...args: Parameters<typeof poll.read>) => {
          const page = await poll.read(...args);
          return { ...page, reports: renameAll(page.reports, args[0]) };
        },
      },
    }),
  });
}

type Send = NonNullable<Definition['sendPayout']>;

/** Changes how payouts are sent. */
function wrapSend(wrap: (send: Send) => Send): Change {
  return {
    definition: (definition) => {
      const { sendPayout, lookUpPayout } = definition;
      if (sendPayout === undefined) throw new Error('The example pays nobody.');
      return { ...definition, sendPayout: wrap(sendPayout), lookUpPayout };
    },
  };
}

const MUTANTS: Record<string, Mutant> = {
  'makes a new bank reference on a repeat': mutateActivities(
    ['payout.repeat', 'payout.race', 'payout.first_answer', 'payout.cut_after'],
    ({ sendPayout }) => ({
      sendPayout: async (input) => {
        const answer = await sendPayout(input);
        return 'bank_reference' in answer ? { ...answer, bank_reference: randomUUID() } : answer;
      },
    }),
  ),
  'answers not_found too early': mutateActivities(['payout.look_up_early'], ({ lookUpPayout }) => ({
    lookUpPayout: (input) =>
      lookUpPayout(input).catch((error: Error) => {
        if (error.name === 'AttemptInProgress') return { outcome: 'not_found' as const };
        throw error;
      }),
  })),
  'ignores a session that is closed before it is opened': mutateActivities(
    ['session.close_first'],
    ({ openSession, closeSession }) => {
      const opened = new Set<string>();
      return {
        openSession: (input) => {
          opened.add(input.payment_id);
          return openSession(input);
        },
        closeSession: async (input) =>
          opened.has(input.payment_id) ? await closeSession(input) : { outcome: 'closed' },
      };
    },
    getFull,
  ),
  'answers voided for money that has settled': mutateActivities(
    ['session.void'],
    () => ({ voidPayment: async () => ({ outcome: 'voided' }) }),
    getFull,
  ),
  'acknowledges webhooks that were not delivered': mutate(['webhooks.acknowledged'], {
    webhooks: (url) =>
      startProxy(0, async (request) => {
        const answer = await passOn(url, request);
        return answer.status === 503 ? { ...answer, status: 200 } : answer;
      }),
  }),
  'reports two facts under one callback_id': mutate(
    ['payout.callbacks', 'payout.any_order', 'callbacks.once'],
    {
      waitMs: SHORT_WAIT_MS,
      definition: renameCallbacks(({ callback }) => String(callback.bank_reference)),
    },
  ),
  'reports a repeat under a new callback_id': mutate(['callbacks.once', 'poll.repeated'], {
    definition: renameCallbacks(() => randomUUID()),
  }),
  'names a fact after the place where it read it': mutate(['poll.repeated'], {
    definition: ({ webhook: _webhook, ...definition }) =>
      renameCallbacks((_report, index, cursor) => `${cursor ?? 'first'}:${index}`)(definition),
  }),
  'ignores the amount': mutate(
    ['payout.money'],
    wrapSend((send) => (payout, tools) => send({ ...payout, amount: 100 }, tools)),
  ),
  'treats an outage as a refusal': mutateActivities(
    ['payout.outage', 'payout.cut_before', 'payout.cut_after'],
    ({ sendPayout }) => ({
      sendPayout: (input) =>
        sendPayout(input).catch((error: Error) => {
          if (error.name !== 'BankFailure') throw error;
          const message = 'The bank did not answer.';
          return { outcome: 'refused' as const, code: 'bank_unavailable', message };
        }),
    }),
  ),
  'sends after a cancellation': mutateActivities(
    ['payout.cancel_first', 'payout.cancel_late'],
    () => ({ cancelPayout: async () => ({ outcome: 'cancelled' }) }),
  ),
  'quotes the recipient in an error': mutate(
    ['payout.private'],
    wrapSend((send) => async (payout, tools) => {
      const { last_name } = await tools.recipient();
      return await send(payout, tools).catch(() => {
        throw new BankFailure(`The transfer to ${last_name} failed.`);
      });
    }),
  ),
  'passes on any code of the bank': mutate(
    ['payout.private'],
    wrapSend(() => sendWithAnyCode),
  ),
  'accepts webhooks that nobody signed': mutate(['webhooks.verified'], {
    definition: (definition) => {
      const { webhook } = definition;
      if (webhook === undefined) throw new Error('It has no webhook.');
      const read: typeof webhook.read = async ({ json }) => [readReport(json())];
      return { ...definition, webhook: { ...webhook, read } };
    },
  }),
  'reads no list of changes': mutate(['webhooks.lost'], {
    waitMs: SHORT_WAIT_MS,
    definition: (definition) => ({
      ...definition,
      poll: { seconds: 3_600, read: async (cursor) => ({ reports: [], cursor }) },
    }),
  }),
  'notices no restore': mutate(['payout.restored'], {
    restoreGuard: {
      ...{ confirm: async () => undefined, check: async () => null },
      ...{ onChange: () => undefined, protect: (activities) => activities },
    },
  }),
  'answers look-ups after a restore': mutateActivities(['payout.restored'], ({ lookUpPayout }) => ({
    lookUpPayout: (input) =>
      lookUpPayout(input).catch((error: Error) => {
        if (error.name !== 'ConnectorStopped') throw error;
        return { outcome: 'not_found' as const };
      }),
  })),
  'says that each answer to a dispute was taken': mutateActivities(
    ['evidence', 'acceptance'].flatMap((name) =>
      ['look_up_first', 'cut_before'].map((what) => `${name}.${what}`),
    ),
    () => ({
      lookUpEvidence: async () => ({ outcome: 'accepted' }),
      lookUpAcceptance: async () => ({ outcome: 'accepted' }),
    }),
    getFull,
  ),
  'calls each answer to a dispute that the bank has not taken not_found': mutateActivities(
    ['evidence.look_up_early', 'acceptance.look_up_early'],
    ({ lookUpEvidence, lookUpAcceptance }) => ({
      lookUpEvidence: (input) => lookUpEvidence(input).catch(() => ({ outcome: 'not_found' })),
      lookUpAcceptance: (input) => lookUpAcceptance(input).catch(() => ({ outcome: 'not_found' })),
    }),
    getFull,
  ),
  'quotes evidence, and sends it after its deadline': mutate(
    ['evidence.late', 'evidence.private'],
    {
      definition: (definition) => {
        const { submitEvidence } = definition;
        if (submitEvidence === undefined) throw new Error('It answers no disputes.');
        const submitAnyhow: typeof submitEvidence = async (input, tools) => {
          const text = { carrier: null, tracking_number: null, refund_reference: null };
          const late = {
            explanation: 'Late.',
            customer_reference: null,
            shipped_at: null,
            ...text,
          };
          const { explanation, ...rest } = await tools.evidence().catch(() => late);
          const evidence = async () => ({ explanation, ...rest });
          return await submitEvidence(input, { ...tools, evidence }).catch(() => {
            throw new BankFailure(`The bank did not take “${explanation}”.`);
          });
        };
        return { ...definition, submitEvidence: submitAnyhow } as Definition;
      },
    },
    getFull,
  ),
  'answers disputes as the document does not say': mutate(
    ['evidence.differs', 'evidence.outdated', 'acceptance.differs', 'acceptance.outdated'],
    { guard: { findOutdated: async () => undefined } },
    getFull,
  ),
  'answers a dispute under a new instruction ID each time': mutate(
    ['evidence.repeat', 'evidence.race', 'acceptance.repeat', 'acceptance.race'],
    {
      guard: { findOutdated: async () => undefined },
      activities: ({ submitEvidence, acceptDispute, ...same }) => {
        const rename = (input: DisputeInstruction) => {
          return { ...input, instruction_id: `${input.instruction_id}:${randomUUID()}` };
        };
        return {
          ...same,
          ...(submitEvidence && { submitEvidence: (input) => submitEvidence(rename(input)) }),
          ...(acceptDispute && { acceptDispute: (input) => acceptDispute(rename(input)) }),
        };
      },
    },
    getFull,
  ),
  'reports a fact about a dispute under a new callback_id each time': mutate(
    ['dispute.once'],
    {
      definition: renameCallbacks(({ name, callback }) =>
        name.startsWith('dispute_') ? randomUUID() : callback.callback_id,
      ),
    },
    getFull,
  ),
  'sends what the document does not say': mutate(
    ['payout.differs', 'payout.outdated', 'payout.frozen'],
    { guard: { findOutdated: async () => undefined } },
  ),
};

/**
 * Checks wait for much of their time, so two run at once: each brings a connector, its bank and eight
 * promises at a time, all in this process, of which three kept a slow machine from taking a task.
 */
const AT_ONCE = 2;
const reports = new Map<string, Promise<CheckReport>>();

beforeAll(() => {
  const withinLimit = createGate(AT_ONCE);
  for (const [name, { check }] of Object.entries(MUTANTS)) {
    const report = withinLimit(check);
    // Each test says what failed.
    report.catch(() => undefined);
    reports.set(name, report);
  }
});

test.each(Object.entries(MUTANTS))(
  'a check names a connector that %s',
  async (name, { broken }) => {
    const report = await reports.get(name);
    const seen = report === undefined ? [] : listBroken(report);
    expect(seen).toEqual(
      broken.map((id) => expect.stringMatching(`^${id}: (?!The check itself failed)`)),
    );
  },
);
