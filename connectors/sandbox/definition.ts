import { z } from 'zod';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import { signPayload } from '../../src/webhooks/attempt';
import type { ConnectorActivities } from '../contract/activities';
import { defineHttp, type HttpSettings } from '../http/definition';
import { type BankRequest, type ConnectorDefinition, defineConnector, type Report } from '../kit';
import type { Tools } from '../kit/definition';
import type { BankRefusal, Book, BookEntry } from './book';
import { getBehavior, PAYOUT_MAGIC_AMOUNTS, REFUND_MAGIC_AMOUNTS } from './magic-amounts';

/** Slow sessions must not block the others. */
const CALLS_AT_ONCE = 200;
const CALLS_PER_SECOND = 1_000;
const POLL_SECONDS = 0.3;

/** The inbox checks each report. */
const Due = z.object({
  due: z.array(z.object({ id: z.string(), report: z.custom<Report>() })),
  more: z.boolean(),
});

type Settings = Tools<HttpSettings>['settings'];

/** @param url address of the bank's API, whose calls the secret signs */
export function buildSettings(url: string, secret: string): Settings {
  return {
    INSTRUCTIONS_URL: url,
    INSTRUCTIONS_SECRET_FILE: secret,
    INSTRUCTIONS_FOR: ['payments', 'refunds', 'payouts', 'cancelPayout', 'disputes'],
    INSTRUCTIONS_PER_SECOND: CALLS_PER_SECOND,
    REFERENCE_PER_STEP: 'no',
  };
}

/** Defines the sandbox bank's connector: one over HTTP that reads the bank's reports, too. */
export function defineSandboxBank(settings: Settings): ConnectorDefinition<HttpSettings> {
  /** IDs at the bank of what it has handed out. */
  const ids = new WeakMap<Report, string>();
  return defineConnector({
    ...defineHttp(settings),
    name: SANDBOX_CONNECTOR,
    limits: { perSecond: CALLS_PER_SECOND, atOnce: CALLS_AT_ONCE },
    repeatsAnswers: true,
    postsCallbacks: false,
    poll: {
      seconds: POLL_SECONDS,
      read: async (cursor, tools) => {
        const { body } = await tools.call(buildRequest(tools, '/reports', {}), { 200: Due });
        for (const { id, report } of body.due) ids.set(report, id);
        return { reports: body.due.map(({ report }) => report), cursor, more: body.more };
      },
      acknowledge: async (delivered, tools) => {
        const request = { ids: delivered.map((report) => ids.get(report)) };
        const call = buildRequest(tools, '/reports/delivered', request);
        await tools.call(call, { 200: z.object({}) });
      },
    },
  });
}

function buildRequest(
  { settings, now }: Tools<HttpSettings>,
  path: string,
  body: object,
): BankRequest {
  const text = JSON.stringify(body);
  const seconds = Math.floor(now().getTime() / 1_000);
  const signature = signPayload(settings.INSTRUCTIONS_SECRET_FILE, text, seconds);
  return {
    method: 'POST',
    url: `${settings.INSTRUCTIONS_URL}${path}`,
    text,
    headers: { 'Service-Signature': signature },
  };
}

interface TransitDeps {
  refunds: Book;
  payouts: Book;
  onOwnPayment: (payment_id: string) => void;
}

/**
 * Simulates the transit of an instruction to the bank: one of some amounts gets lost the first time,
 * and one of live is refused.
 */
export function simulateTransit(
  bank: ConnectorActivities,
  { refunds, payouts, onOwnPayment }: TransitDeps,
): ConnectorActivities {
  return {
    ...bank,
    openSession: async (input) => {
      const refusal = refuseLive('takes no live payments');
      if (input.livemode) return { outcome: 'declined', ...refusal };
      onOwnPayment(input.payment_id);
      return await bank.openSession(input);
    },
    sendRefund: async (input) => {
      if (input.livemode) return { outcome: 'refused', ...refuseLive('sends no live refunds') };
      const isLost = getBehavior(REFUND_MAGIC_AMOUNTS, input.amount) === 'instruction_lost';
      if (isLost) await loseOnce(refunds, input.refund_id, input);
      return await bank.sendRefund(input);
    },
    sendPayout: async (input) => {
      if (input.livemode) return { outcome: 'refused', ...refuseLive('sends no live payouts') };
      const isLost = getBehavior(PAYOUT_MAGIC_AMOUNTS, input.amount) === 'instruction_lost';
      if (isLost) await loseOnce(payouts, input.payout_id, input);
      return await bank.sendPayout(input);
    },
  };
}

function refuseLive(what: string): BankRefusal {
  return { code: 'live_not_supported', message: `The sandbox bank ${what}.` };
}

/** @throws Error for the first instruction of this id, as if it had never arrived */
async function loseOnce(
  book: Book,
  id: string,
  instruction: BookEntry['instruction'],
): Promise<void> {
  if (!(await book.lose(id, instruction))) return;
  throw new Error('The instruction got lost in transit to the bank.');
}
