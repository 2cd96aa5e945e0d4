import { CONTRACT_VERSION } from '../../src/domain/capabilities';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import { signPayload } from '../../src/webhooks/signature';
import { ACTIVITIES, type ActivityName, Refusal } from '../contract/schemas';
import { BankFailure, type BankRequest, type ConnectorDefinition, defineConnector } from '../kit';
import type {
  AnswersDisputes,
  Optional,
  SendsPayouts,
  SendsRefunds,
  TakesPayments,
  Tools,
} from '../kit/definition';
import { type HttpSettings, httpSettings } from './settings';

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

const PAYMENTS: TakesPayments<HttpSettings> = {
  openSession: async (input, tools) => {
    const request = buildRequest(tools, 'openSession', input, input.payment_id);
    const { answer } = ACTIVITIES.openSession;
    const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
    if (status === 422) return { outcome: 'declined', ...body };
    if (!('session_url' in body)) return body;
    if (input.livemode && !body.session_url.startsWith('https:')) {
      throw new BankFailure('The bank’s session_url is not https.');
    }
    return body;
  },
  closeSession: async (input, tools) => {
    // The payment's own ID is the key of openSession.
    const request = buildRequest(tools, 'closeSession', input, `close:${input.payment_id}`);
    return (await tools.call(request, { 200: ACTIVITIES.closeSession.answer })).body;
  },
  voidPayment: async (input, tools) => {
    const request = buildRequest(tools, 'voidPayment', input, input.instruction_id);
    return (await tools.call(request, { 200: ACTIVITIES.voidPayment.answer })).body;
  },
  reversePayment: async (input, tools) => {
    const request = buildRequest(tools, 'reversePayment', input, input.instruction_id);
    const { answer } = ACTIVITIES.reversePayment;
    const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
    return status === 422 ? { outcome: 'refused', ...body } : body;
  },
};

const REFUNDS: SendsRefunds<HttpSettings> = {
  sendRefund: async (input, tools) => {
    const request = buildRequest(tools, 'sendRefund', input, input.refund_id);
    const { answer } = ACTIVITIES.sendRefund;
    const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
    return status === 422 ? { outcome: 'refused', ...body } : body;
  },
  lookUpRefund: async (input, tools) => {
    const request = buildRequest(tools, 'lookUpRefund', input);
    const { answer } = ACTIVITIES.lookUpRefund;
    const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
    return status === 422 ? { outcome: 'refused', ...body } : body;
  },
};

const PAYOUTS: SendsPayouts<HttpSettings> = {
  sendPayout: async (input, tools) => {
    const recipient = await tools.recipient();
    const secrets = { reference: await tools.reference(), recipient };
    const request = buildRequest(tools, 'sendPayout', { ...input, ...secrets }, input.payout_id);
    const { answer } = ACTIVITIES.sendPayout;
    const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
    if (status !== 422) return body;
    // Answers stay in Temporal's history, and merchants read them.
    const code = quotesRecipient(body.code, recipient) ? 'refused' : body.code;
    const message = quotesRecipient(body.message, recipient) ? REFUSED : body.message;
    return { outcome: 'refused', code, message };
  },
  lookUpPayout: async (input, tools) => {
    const request = buildRequest(tools, 'lookUpPayout', input);
    const { answer } = ACTIVITIES.lookUpPayout;
    const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
    // A look-up does not decrypt the recipient, whom the message may quote.
    return status === 422 ? { outcome: 'refused', code: body.code, message: REFUSED } : body;
  },
};

const DISPUTES: AnswersDisputes<HttpSettings> = {
  submitEvidence: async (input, tools) => {
    const evidence = await tools.evidence();
    const request = buildRequest(
      tools,
      'submitEvidence',
      { ...input, evidence },
      input.instruction_id,
    );
    const { answer } = ACTIVITIES.submitEvidence;
    const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
    // The message may quote what the merchant wrote.
    return status === 422 ? { outcome: 'refused', code: body.code, message: NOT_TAKEN } : body;
  },
  lookUpEvidence: async (input, tools) => {
    const request = buildRequest(tools, 'lookUpEvidence', input);
    const { answer } = ACTIVITIES.lookUpEvidence;
    const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
    return status === 422 ? { outcome: 'refused', code: body.code, message: NOT_TAKEN } : body;
  },
  acceptDispute: async (input, tools) => {
    const request = buildRequest(tools, 'acceptDispute', input, input.instruction_id);
    const { answer } = ACTIVITIES.acceptDispute;
    const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
    return status === 422 ? { outcome: 'refused', ...body } : body;
  },
  lookUpAcceptance: async (input, tools) => {
    const request = buildRequest(tools, 'lookUpAcceptance', input);
    const { answer } = ACTIVITIES.lookUpAcceptance;
    const { status, body } = await tools.call(request, { 200: answer, 422: Refusal });
    return status === 422 ? { outcome: 'refused', ...body } : body;
  },
};

const NOT_TAKEN = 'The bank did not take the evidence.';

const cancelPayout: NonNullable<SendsPayouts<HttpSettings>['cancelPayout']> = async (
  input,
  tools,
) => {
  const request = buildRequest(tools, 'cancelPayout', input);
  return (await tools.call(request, { 200: ACTIVITIES.cancelPayout.answer })).body;
};

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
