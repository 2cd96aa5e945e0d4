import { randomUUID } from 'node:crypto';
import { passOn, startProxy } from '../../../connectors/conformance/proxy';
import { BankFailure, type DisputeInstruction, type Report } from '../../../connectors/kit';
import type { ConnectorDefinition } from '../../../connectors/kit/definition';
import { createGate } from '../../../src/base/gate';
import type { CheckReport } from '../../../src/service/banks/connector-check';
import { fullExample, readReport, type Settings, sendWithAnyCode } from './full-example';
import { type Activities, type Change, checkOnKit, listBroken, SECRET } from './setting';

type Definition = ConnectorDefinition<Settings>;

/** A change of the full example, and the promises that it breaks. */
interface Mutant extends Omit<Change<Settings>, 'activities' | 'definition'> {
  /** Those of one number make one connector, which is checked once. */
  group: number;
  broken: string[];
  activities?: (same: Required<Activities>) => Activities;
  definition?: (same: Required<Definition>) => Partial<Definition>;
}

/** Promises that a mutant may break by mistake. Checks of whole connectors are elsewhere. */
const OTHERS = ['payout.repeat', 'payout.callbacks', 'payout.private', 'callbacks.once'];

/** Renames the callbacks of every report, in webhooks and in the list of changes. */
function renameCallbacks(rename: (report: Report, at: number, cursor: string | null) => string) {
  const renameAll = (reports: Report[], cursor: string | null = null) =>
    reports.map((report, at) => ({
      ...report,
      callback: { ...report.callback, callback_id: rename(report, at, cursor) },
    }));
  return ({ webhook, poll }: Pick<Required<Definition>, 'webhook' | 'poll'>) => ({
    webhook: {
      ...webhook,
      read: async (...args: Parameters<typeof webhook.read>) =>
        renameAll(await webhook.read(...args)),
    },
    poll: {
      ...poll,
      read: async (...args: Parameters<typeof poll.read>) => {
        const page = await poll.read(...args);
        return { ...page, reports: renameAll(page.reports, args[0]) };
      },
    },
  });
}

/** Answers for an error of this name, and throws all others. */
const answerFor =
  <A>(name: string, answer: A) =>
  (error: Error): A => {
    if (error.name === name) return answer;
    throw error;
  };
const NOT_FOUND = { outcome: 'not_found' } as const;

/** By what they do. No mutant touches what another one of its group breaks. */
const MUTANTS: Record<string, Mutant> = {
  'makes a new bank reference on a repeat': {
    group: 0,
    broken: ['payout.repeat', 'payout.race', 'payout.first_answer', 'payout.cut_after'],
    activities: ({ sendPayout }) => ({
      sendPayout: async (input) => {
        const answer = await sendPayout(input);
        return 'bank_reference' in answer ? { ...answer, bank_reference: randomUUID() } : answer;
      },
    }),
  },
  'ignores a session that is closed before it is opened': {
    group: 0,
    broken: ['session.close_first'],
    activities: ({ openSession, closeSession }) => {
      const opened = new Set<string>();
      return {
        openSession: (input) => openSession(input).finally(() => opened.add(input.payment_id)),
        closeSession: async (input) =>
          opened.has(input.payment_id) ? await closeSession(input) : { outcome: 'closed' },
      };
    },
  },
  'answers voided for money that has settled': {
    group: 0,
    broken: ['session.void'],
    activities: () => ({ voidPayment: async () => ({ outcome: 'voided' }) }),
  },
  'ignores the amount': {
    group: 0,
    broken: ['payout.money'],
    definition: ({ sendPayout }) => ({
      sendPayout: (payout, tools) => sendPayout({ ...payout, amount: 100 }, tools),
    }),
  },
  'calls each answer to a dispute that the bank has not taken not_found': {
    group: 0,
    broken: ['evidence.look_up_early', 'acceptance.look_up_early'],
    activities: ({ lookUpEvidence, lookUpAcceptance }) => ({
      lookUpEvidence: (input) => lookUpEvidence(input).catch(() => NOT_FOUND),
      lookUpAcceptance: (input) => lookUpAcceptance(input).catch(() => NOT_FOUND),
    }),
  },
  'reports a fact about a dispute under a new callback_id each time': {
    group: 0,
    broken: ['dispute.once'],
    definition: renameCallbacks(({ name, callback }) =>
      name.startsWith('dispute_') ? randomUUID() : callback.callback_id,
    ),
  },
  'accepts webhooks that nobody signed': {
    group: 0,
    broken: ['webhooks.verified'],
    definition: ({ webhook }) => ({
      webhook: { ...webhook, read: async ({ json }) => [readReport(json())] },
    }),
  },
  'answers not_found too early': {
    group: 1,
    broken: ['payout.look_up_early'],
    activities: ({ lookUpPayout }) => ({
      lookUpPayout: (input) => lookUpPayout(input).catch(answerFor('AttemptInProgress', NOT_FOUND)),
    }),
  },
  'acknowledges webhooks that were not delivered': {
    group: 1,
    broken: ['webhooks.acknowledged'],
    webhooks: (url) =>
      startProxy(0, async (request) => {
        const answer = await passOn(url, request);
        return answer.status === 503 ? { ...answer, status: 200 } : answer;
      }),
  },
  'reports a repeat under a new callback_id': {
    group: 1,
    broken: ['callbacks.once', 'poll.repeated'],
    definition: renameCallbacks(() => randomUUID()),
  },
  'sends after a cancellation': {
    group: 1,
    broken: ['payout.cancel_first', 'payout.cancel_late'],
    activities: () => ({ cancelPayout: async () => ({ outcome: 'cancelled' }) }),
  },
  'quotes the recipient in an error': {
    group: 1,
    broken: ['payout.private'],
    definition: ({ sendPayout }) => ({
      sendPayout: async (payout, tools) => {
        const { last_name } = await tools.recipient();
        return await sendPayout(payout, tools).catch(() => {
          throw new BankFailure(`The transfer to ${last_name} failed.`);
        });
      },
    }),
  },
  'quotes evidence, and sends it after its deadline': {
    group: 1,
    broken: ['evidence.late', 'evidence.private'],
    definition: ({ submitEvidence }) => ({
      submitEvidence: async (input, tools) => {
        const late = {
          ...{ explanation: 'Late.', customer_reference: null, shipped_at: null },
          ...{ carrier: null, tracking_number: null, refund_reference: null },
        };
        const text = await tools.evidence().catch(() => late);
        return await submitEvidence(input, { ...tools, evidence: async () => text }).catch(() => {
          throw new BankFailure(`The bank did not take “${text.explanation}”.`);
        });
      },
    }),
  },
  'treats an outage as a refusal': {
    group: 2,
    broken: ['payout.outage', 'payout.cut_before', 'payout.cut_after'],
    activities: ({ sendPayout }) => ({
      sendPayout: (input) => {
        const refused = { outcome: 'refused', code: 'unavailable', message: 'No answer.' } as const;
        return sendPayout(input).catch(answerFor('BankFailure', refused));
      },
    }),
  },
  'says that each answer to a dispute was taken': {
    group: 2,
    broken: ['evidence', 'acceptance'].flatMap((name) => [
      ...[`${name}.look_up_first`, `${name}.cut_before`],
    ]),
    activities: () => ({
      lookUpEvidence: async () => ({ outcome: 'accepted' }),
      lookUpAcceptance: async () => ({ outcome: 'accepted' }),
    }),
  },
  'names a fact after the place where it read it': {
    group: 2,
    broken: ['poll.repeated'],
    definition: (same) => {
      const rename = renameCallbacks((_report, at, cursor) => `${cursor ?? 'first'}:${at}`);
      return { ...rename(same), webhook: undefined };
    },
  },
  'notices no restore': {
    group: 2,
    broken: ['payout.restored'],
    restoreGuard: {
      ...{ confirm: async () => undefined, check: async () => null },
      ...{ onChange: () => undefined, protect: (activities) => activities },
    },
  },
  'passes on any code of the bank': {
    group: 3,
    broken: ['payout.private'],
    definition: () => ({ sendPayout: sendWithAnyCode }),
  },
  'answers look-ups after a restore': {
    group: 3,
    broken: ['payout.restored'],
    activities: ({ lookUpPayout }) => ({
      lookUpPayout: (input) => lookUpPayout(input).catch(answerFor('ConnectorStopped', NOT_FOUND)),
    }),
  },
  'sends what the document does not say': {
    group: 3,
    broken: [
      ...['payout.differs', 'payout.outdated', 'payout.frozen', 'evidence.differs'],
      ...['evidence.outdated', 'acceptance.differs', 'acceptance.outdated'],
    ],
    guard: { findOutdated: async () => undefined },
  },
  'answers a dispute under a new instruction ID each time': {
    group: 3,
    broken: ['evidence.repeat', 'evidence.race', 'acceptance.repeat', 'acceptance.race'],
    activities: ({ submitEvidence, acceptDispute }) => {
      const rename = (input: DisputeInstruction) => {
        return { ...input, instruction_id: `${input.instruction_id}:${randomUUID()}` };
      };
      return {
        submitEvidence: (input) => submitEvidence(rename(input)),
        acceptDispute: (input) => acceptDispute(rename(input)),
      };
    },
  },
  'reports two facts under one callback_id': {
    group: 4,
    broken: ['payout.callbacks', 'payout.any_order', 'callbacks.once'],
    definition: renameCallbacks(({ callback }) => String(callback.bank_reference)),
  },
  'reads no list of changes': {
    group: 4,
    broken: ['webhooks.lost'],
    // It lasts as long as the wait for a report that never comes.
    waitMs: 8_000,
    definition: () => ({
      poll: { seconds: 3_600, read: async (cursor) => ({ reports: [], cursor }) },
    }),
  },
};

/** Makes one connector of mutants. */
function combine(mutants: Mutant[]): Change<Settings> {
  const only = [...mutants.flatMap(({ broken }) => broken), ...OTHERS];
  return {
    ...Object.assign({}, ...mutants, { only }),
    definition: (full) => {
      const made = { ...full } as Required<Definition>;
      for (const { definition } of mutants) Object.assign(made, definition?.(made));
      return made;
    },
    activities: (full) => {
      const made = { ...full } as Required<Activities>;
      for (const { activities } of mutants) Object.assign(made, activities?.(made));
      return made;
    },
  };
}

/**
 * Checks wait for much of their time, so two run at once: each brings a connector, its bank and eight
 * promises at a time, all in this process, of which three kept a slow machine from taking a task.
 */
const AT_ONCE = 2;
const listGroup = (of: number) => Object.values(MUTANTS).filter(({ group }) => group === of);
const reports = new Map<number, Promise<CheckReport>>();

beforeAll(() => {
  const withinLimit = createGate(AT_ONCE);
  const settings = { EXAMPLE_KEY_FILE: SECRET };
  for (const group of [0, 1, 2, 3, 4]) {
    const change = combine(listGroup(group));
    const check = () => checkOnKit(fullExample as Definition, settings, change);
    const report = withinLimit(check);
    // Each test says what failed.
    report.catch(() => undefined);
    reports.set(group, report);
  }
});

test.each(Object.entries(MUTANTS))(
  'a check names a connector that %s',
  async (_name, { group, broken }) => {
    const report = await reports.get(group);
    const others = listGroup(group).flatMap((each) => each.broken);
    const isOwn = (id: string) => broken.includes(id) || !others.includes(id);
    const seen = report === undefined ? [] : listBroken(report);
    expect(seen.filter((each) => isOwn(each.split(':')[0] ?? ''))).toEqual(
      broken.map((id) => expect.stringMatching(`^${id}: (?!The check itself failed)`)),
    );
  },
);
