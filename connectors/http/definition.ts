import { z } from 'zod';
import { CONTRACT_VERSION } from '../../src/domain/banks/capabilities';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import { signPayload } from '../../src/webhooks/attempt';
import { ACTIVITIES, type ActivityName, Refusal } from '../contract/schemas';
import {
  BankFailure,
  type BankRequest,
  type ConnectorDefinition,
  defineConnector,
  secretFile,
} from '../kit';
import type {
  AnswersDisputes,
  Optional,
  SendsPayouts,
  SendsRefunds,
  TakesPayments,
  Tools,
} from '../kit/definition';

const SECRET_LENGTH_MIN = 24;

const GROUPS = ['payments', 'refunds', 'payouts', 'cancelPayout', 'disputes'] as const;

export const httpSettings = {
  INSTRUCTIONS_URL: z
    .url({ protocol: /^https?$/ })
    .refine((text) => {
      // The rule before this one names what is no URL.
      if (!URL.canParse(text)) return true;
      const { username, password, search, hash } = new URL(text);
      return [username, password, search, hash].every((part) => part === '');
    }, 'must have no user name, query or fragment')
    .transform((url) => url.replace(/\/+$/, ''))
    .meta({
      description: 'Address before `/instructions/{activity}`; https, in the sandbox also http',
    }),
  INSTRUCTIONS_SECRET_FILE: secretFile
    .refine(
      ({ length }) => length >= SECRET_LENGTH_MIN,
      `the secret must have at least ${SECRET_LENGTH_MIN} characters`,
    )
    .meta({ description: 'File with the secret that signs them' }),
  INSTRUCTIONS_FOR: z
    .string()
    .transform((text, ctx) => {
      const names = text.split('|').map((name) => name.trim());
      const groups = GROUPS.filter((group) => names.includes(group));
      const canCancel = groups.includes('payouts') || !groups.includes('cancelPayout');
      if (groups.length === names.length && canCancel) return groups;
      const message = `must be some of ${GROUPS.join(', ')}, separated by |; cancelPayout needs payouts`;
      ctx.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .meta({
      description: 'What the bank has of `payments|refunds|payouts|cancelPayout|disputes`',
    }),
  INSTRUCTIONS_PER_SECOND: z.coerce.number().int().min(1).max(1_000).default(20).meta({
    description: 'Instructions per second of each process',
  }),
  REFERENCE_PER_STEP: z.enum(['yes', 'no']).default('no').meta({
    description: 'yes: `completed` of a payout has another `bank_reference` than `sent`',
  }),
};

export type HttpSettings = typeof httpSettings;

const CALLS_AT_ONCE = 50;
const REFUSED = 'The bank refused the payout.';

type HttpTools = Tools<HttpSettings>;

/**
 * Defines a connector that posts instructions to a bank team's server. The bank posts its callbacks
 * to the API itself.
 * @see docs/connectors.md#instructions-over-http
 */
export function defineHttp({
  INSTRUCTIONS_FOR: groups,
  INSTRUCTIONS_PER_SECOND: perSecond,
  REFERENCE_PER_STEP: referencePerStep,
}: Pick<
  HttpTools['settings'],
  'INSTRUCTIONS_FOR' | 'INSTRUCTIONS_PER_SECOND' | 'REFERENCE_PER_STEP'
>): ConnectorDefinition<HttpSettings> {
  const hasPayments = groups.includes('payments');
  const hasPayouts = groups.includes('payouts');
  const payments: Optional<TakesPayments<HttpSettings>> = hasPayments ? PAYMENTS : {};
  const refunds: Optional<SendsRefunds<HttpSettings>> = groups.includes('refunds') ? REFUNDS : {};
  const canCancel = groups.includes('cancelPayout');
  const payouts: Optional<SendsPayouts<HttpSettings>> = hasPayouts
    ? { ...PAYOUTS, ...(canCancel ? { cancelPayout } : {}) }
    : {};
  const disputes: Optional<AnswersDisputes<HttpSettings>> = groups.includes('disputes')
    ? DISPUTES
    : {};
  return defineConnector<HttpSettings>({
    name: 'http',
    // The variable of the API says which of them are routed here.
    serves: [...(hasPayments ? PAYMENT_METHOD_IDS : []), ...(hasPayouts ? RAIL_IDS : [])],
    settings: httpSettings,
    limits: { perSecond, atOnce: CALLS_AT_ONCE },
    postsCallbacks: true,
    referencePerStep: referencePerStep === 'yes',
    ...payments,
    ...refunds,
    ...payouts,
    ...disputes,
  });
}

/** A look-up and a cancellation have no idempotency key. */
function buildRequest(
  { settings, now }: HttpTools,
  activity: ActivityName,
  input: object,
  id?: string,
): BankRequest {
  // Parsed, so that nothing but the contract leaves.
  const text = JSON.stringify(ACTIVITIES[activity].instruction.parse({ activity, ...input }));
  const seconds = Math.floor(now().getTime() / 1_000);
  return {
    ...{ method: 'POST', url: `${settings.INSTRUCTIONS_URL}/instructions/${activity}`, text },
    headers: {
      'Contract-Version': String(CONTRACT_VERSION),
      'Service-Signature': signPayload(settings.INSTRUCTIONS_SECRET_FILE, text, seconds),
      ...(id === undefined ? {} : { 'Idempotency-Key': id }),
    },
  };
}

type Answered<N extends ActivityName> = z.output<(typeof ACTIVITIES)[N]['answer']>;
type Refused = { outcome: 'refused'; code: string; message: string };

/** Posts an instruction that the bank may refuse. */
async function instruct<N extends ActivityName>(
  activity: N,
  input: object,
  tools: HttpTools,
  id?: string,
): Promise<Answered<N> | Refused> {
  const { answer } = ACTIVITIES[activity];
  const request = buildRequest(tools, activity, input, id);
  const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
  // The schema is that of the activity.
  return status === 422 ? { outcome: 'refused', ...body } : (body as Answered<N>);
}

/** Posts one that it answers. */
async function ask<N extends ActivityName>(
  activity: N,
  input: object,
  tools: HttpTools,
  id?: string,
): Promise<Answered<N>> {
  const { answer } = ACTIVITIES[activity];
  const { body } = await tools.call(buildRequest(tools, activity, input, id), { 200: answer });
  return body as Answered<N>;
}

/** Replaces the message of a refusal, which may quote what the bank was sent. */
function hide<A extends { outcome: string }>(answer: A | Refused, message: string): A | Refused {
  return isRefused(answer) ? { ...answer, message } : answer;
}

function isRefused(answer: { outcome: string }): answer is Refused {
  return answer.outcome === 'refused';
}

const PAYMENTS: TakesPayments<HttpSettings> = {
  openSession: async (input, tools) => {
    const answer = await instruct('openSession', input, tools, input.payment_id);
    if (isRefused(answer)) return { ...answer, outcome: 'declined' };
    if (!('session_url' in answer)) return answer;
    if (input.livemode && !answer.session_url.startsWith('https:')) {
      throw new BankFailure('The bank’s session_url is not https.');
    }
    return answer;
  },
  // The payment's own ID is the key of openSession.
  closeSession: (input, tools) => ask('closeSession', input, tools, `close:${input.payment_id}`),
  voidPayment: (input, tools) => ask('voidPayment', input, tools, input.instruction_id),
  reversePayment: (input, tools) => instruct('reversePayment', input, tools, input.instruction_id),
};

const REFUNDS: SendsRefunds<HttpSettings> = {
  sendRefund: (input, tools) => instruct('sendRefund', input, tools, input.refund_id),
  lookUpRefund: (input, tools) => instruct('lookUpRefund', input, tools),
};

const PAYOUTS: SendsPayouts<HttpSettings> = {
  sendPayout: async (input, tools) => {
    const recipient = await tools.recipient();
    const secrets = { reference: await tools.reference(), recipient };
    const answer = await instruct('sendPayout', { ...input, ...secrets }, tools, input.payout_id);
    if (!isRefused(answer)) return answer;
    // Answers stay in Temporal's history, and merchants read them.
    const code = quotesRecipient(answer.code, recipient) ? 'refused' : answer.code;
    const message = quotesRecipient(answer.message, recipient) ? REFUSED : answer.message;
    return { outcome: 'refused', code, message };
  },
  // A look-up does not decrypt the recipient, whom the message may quote.
  lookUpPayout: async (input, tools) => hide(await instruct('lookUpPayout', input, tools), REFUSED),
};

const DISPUTES: AnswersDisputes<HttpSettings> = {
  submitEvidence: async (input, tools) => {
    const evidence = await tools.evidence();
    const { instruction_id: id } = input;
    const answer = await instruct('submitEvidence', { ...input, evidence }, tools, id);
    return hide(answer, NOT_TAKEN);
  },
  lookUpEvidence: async (input, tools) =>
    hide(await instruct('lookUpEvidence', input, tools), NOT_TAKEN),
  acceptDispute: (input, tools) => instruct('acceptDispute', input, tools, input.instruction_id),
  lookUpAcceptance: (input, tools) => instruct('lookUpAcceptance', input, tools),
};

const NOT_TAKEN = 'The bank did not take the evidence.';

const cancelPayout: NonNullable<SendsPayouts<HttpSettings>['cancelPayout']> = (input, tools) =>
  ask('cancelPayout', input, tools);

const HARMLESS = new Set(['type', 'country']);
/** Values of this length also count inside of words. */
const WORD_LENGTH = 4;
/** Digits of this length count as a part of a number. */
const DIGITS = /\d{6,}/g;

/** Detects any data of a recipient, also behind spaces and punctuation. */
function quotesRecipient(text: string, recipient: RecipientDetails): boolean {
  const words = text.toLowerCase().split(/[^\p{L}\p{N}]+/u);
  const joined = words.join('');
  const numbers = joined.match(DIGITS) ?? [];
  return Object.entries(recipient).some(([name, value]) => {
    if (value === null || HARMLESS.has(name)) return false;
    const sought = value.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
    if (sought === '') return false;
    if (numbers.some((number) => sought.includes(number))) return true;
    return sought.length < WORD_LENGTH ? words.includes(sought) : joined.includes(sought);
  });
}
