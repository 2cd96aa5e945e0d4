import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Db } from 'mongodb';
import type { z } from 'zod';
import type { Logger } from '../../src/base/log';
import type { BankCallback, BankResource, CALLBACKS } from '../../src/domain/banks/callback';
import type { MadeStatement, MadeTransfer } from '../../src/domain/banks/statement';
import { CRYPTO_METHODS } from '../../src/domain/crypto/assets';
import type { Evidence } from '../../src/domain/dispute/evidence';
import { PAYMENT_METHOD_IDS, type PaymentMethodId } from '../../src/domain/payment/catalog';
import { isRailId, RAIL_IDS, type RailId } from '../../src/domain/payout/rails';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import type {
  CancelAnswer,
  CloseAnswer,
  DisputeInstruction,
  DisputeLookup,
  DisputeQuestion,
  DisputeReply,
  PayoutAnswer,
  PayoutInstruction,
  PayoutLookup,
  RefundAnswer,
  RefundInstruction,
  RefundLookup,
  ReversalAnswer,
  ReversalInstruction,
  SessionAnswer,
  SessionInstruction,
  VoidAnswer,
} from '../contract/activities';
import type { BankLimits, CallBank } from './bank-client';

/** Fact that a bank reports about a payment, refund or payout. */
export type Report = {
  [R in BankResource]: {
    resource: R;
    resource_id: string;
    name: (typeof CALLBACKS)[R][number];
    callback: BankCallback;
  };
}[BankResource];

/** Row of a bank’s list that the connector cannot read. */
export interface Malformed {
  /** Name that the bank gives it. */
  id: string;
  /** Sentence without values of the bank. */
  why: string;
}

/** Schemas of a connector's own variables, by name. */
export type Settings = z.ZodRawShape;

/** Settings and clients for a connector's functions. */
export interface Tools<S extends Settings> {
  settings: z.output<z.ZodObject<S>>;
  /** @see connectors/kit/bank-client.ts */
  call: CallBank;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
  now: () => Date;
}

/** Tools of `sendPayout`; the recipient's data goes only to the bank. */
export interface PayoutTools<S extends Settings> extends Tools<S> {
  recipient: () => Promise<RecipientDetails>;
  /** Text for the recipient's statement. */
  reference: () => Promise<string | null>;
}

/** Session; null `bank_reference`: its instruction has no answer yet. */
interface Session {
  payment_id: string;
  bank_reference: string | null;
}

/** Functions for payments: all four, or none. @see docs/connectors.md#instructions */
export interface TakesPayments<S extends Settings> {
  openSession: (input: SessionInstruction, tools: Tools<S>) => Promise<SessionAnswer>;
  closeSession: (input: Session, tools: Tools<S>) => Promise<CloseAnswer>;
  voidPayment: (
    input: Session & { instruction_id: string },
    tools: Tools<S>,
  ) => Promise<VoidAnswer>;
  reversePayment: (input: ReversalInstruction, tools: Tools<S>) => Promise<ReversalAnswer>;
}

export interface SendsRefunds<S extends Settings> {
  sendRefund: (input: RefundInstruction, tools: Tools<S>) => Promise<RefundAnswer>;
  lookUpRefund: (input: { refund_id: string }, tools: Tools<S>) => Promise<RefundLookup>;
}

export interface SendsPayouts<S extends Settings> {
  sendPayout: (input: PayoutInstruction, tools: PayoutTools<S>) => Promise<PayoutAnswer>;
  lookUpPayout: (input: { payout_id: string }, tools: Tools<S>) => Promise<PayoutLookup>;
  /** Optional: without it, a payout that the bank holds is answered `too_late`. */
  cancelPayout?: (input: { payout_id: string }, tools: Tools<S>) => Promise<CancelAnswer>;
}

/** Tools of `submitEvidence`; what it reads goes only to the bank. */
export interface EvidenceTools<S extends Settings> extends Tools<S> {
  evidence: () => Promise<Evidence>;
}

/** Functions for disputes: all four, or none. @see docs/connectors.md#disputes */
export interface AnswersDisputes<S extends Settings> {
  submitEvidence: (input: DisputeInstruction, tools: EvidenceTools<S>) => Promise<DisputeReply>;
  lookUpEvidence: (input: DisputeQuestion, tools: Tools<S>) => Promise<DisputeLookup>;
  acceptDispute: (input: DisputeInstruction, tools: Tools<S>) => Promise<DisputeReply>;
  lookUpAcceptance: (input: DisputeQuestion, tools: Tools<S>) => Promise<DisputeLookup>;
}

export interface Webhook<S extends Settings> {
  /** Path on the connector's own port, such as `/webhooks`. */
  path: string;
  /** 64 KiB by default. */
  bodyBytesMax?: number;
  /**
   * Verifies the sender, and reads the reports that concern the service.
   * @throws WebhookRefused if the sender is not verified
   */
  read: (request: WebhookRequest, tools: Tools<S>) => Promise<Report[]>;
}

export interface Poll<S extends Settings> {
  /** Pause between two reads with nothing new. */
  seconds: number;
  /**
   * Reads what follows the cursor; null at the first start. The new cursor is stored once all
   * reports are delivered, so a report may come twice and is never lost. What is malformed is set
   * aside for an operator.
   */
  read: (
    cursor: string | null,
    tools: Tools<S>,
  ) => Promise<{
    reports: Report[];
    malformed?: readonly Malformed[];
    cursor: string | null;
    more?: boolean;
  }>;
  /**
   * Acknowledges what is delivered, at a bank that hands each report out until then. No cursor is
   * stored, and a report that cannot be delivered keeps back only those of its resource.
   */
  acknowledge?: (delivered: readonly Report[], tools: Tools<S>) => Promise<void>;
}

/** Day of an account at the bank, of which a statement is made. */
export interface StatementDay {
  account: string;
  /** ISO 4217. */
  currency: string;
  /** Begin of the first day whose movements are known; what shows late is booked now. */
  since: Date;
  /** Midnight UTC after the day, exclusive. */
  end: Date;
  /** Minor units with which the day before has closed; null of the first statement. */
  opening: number | null;
  /** Whether one of the days before has a movement, by its reference. */
  isBooked: (bank_reference: string) => boolean;
  /** Whether the closing balance is that to which the bank's own leads back; else it follows. */
  isCompared: boolean;
}

export interface Statements<S extends Settings> {
  /** Hours after the end of a day when the bank shows all of it. */
  readyHours: number;
  /** A closing balance to which the lines do not lead is for an operator. */
  make: (
    day: StatementDay,
    tools: Tools<S>,
  ) => Promise<Pick<MadeStatement, 'opening' | 'closing' | 'lines'>>;
  /**
   * Lists transfers of the last weeks, of which a bank says more after their day.
   * @param isRead whether the parts of one are stored, by its reference
   */
  listTransfers?: (
    isRead: (bank_reference: string) => boolean,
    tools: Tools<S>,
  ) => Promise<MadeTransfer[]>;
}

/** Parts of a process, once it is connected. */
interface Prepared<S extends Settings> extends Pick<Tools<S>, 'settings' | 'now'> {
  /** Own database. */
  db: Db;
  livemode: boolean;
}

interface Base<S extends Settings> {
  /** Default name; `CONNECTOR_NAME` replaces it. */
  name: string;
  /** Methods and rails that the bank has. */
  serves: readonly (PaymentMethodId | RailId)[];
  /** Variables of the connector, read at its start. */
  settings: S;
  limits?: BankLimits;
  /** Opens what its functions need, before they run. @throws Error that refuses the start */
  prepare?: (own: Prepared<S>) => Promise<void>;
  webhook?: Webhook<S>;
  poll?: Poll<S>;
  /** Makes statements of a balance of which the bank has none. */
  statements?: Statements<S>;
  /** Whether the bank posts signed callbacks to the API itself, without this process. */
  postsCallbacks?: boolean;
  /**
   * Whether the bank answers a repeat of an instruction, for as long as the service may repeat it,
   * as it has answered the first: the first attempt is then not looked up before it is sent.
   */
  repeatsAnswers?: boolean;
  /**
   * Whether the bank gives a payout another reference where it is completed than where it is sent.
   * Otherwise that is a second payment.
   */
  referencePerStep?: boolean;
  /** Minor units; a larger fee of a dispute is not posted. */
  disputeFeeMax?: number;
}

type None<T> = { [K in keyof T]?: undefined };
/** All functions of a group, or none. */
export type Optional<T> = T | None<T>;

export type ConnectorDefinition<S extends Settings> = Base<S> &
  Optional<TakesPayments<S>> &
  Optional<SendsRefunds<S>> &
  Optional<SendsPayouts<S>> &
  Optional<AnswersDisputes<S>>;

/**
 * Defines a connector, whose functions are its capabilities.
 * @throws Error if it serves a method or rail without the functions for it
 * @see docs/connectors.md#write-a-connector
 */
export function defineConnector<const S extends Settings>(
  definition: ConnectorDefinition<S>,
): ConnectorDefinition<S> {
  const { name, serves } = definition;
  for (const id of serves) {
    const needed = isRailId(id) ? 'sendPayout' : 'openSession';
    if (definition[needed] === undefined) {
      throw new Error(`The connector ${name} serves ${id}, so it needs ${needed}.`);
    }
  }
  if (!deliversReports(definition) && definition.postsCallbacks !== true) {
    throw new Error(`The connector ${name} learns of no result: it needs webhook or poll.`);
  }
  return definition;
}

/** Whether the process delivers reports of the bank, and signs them on live. */
export function deliversReports<S extends Settings>({
  webhook,
  poll,
}: Pick<Base<S>, 'webhook' | 'poll'>): boolean {
  return webhook !== undefined || poll !== undefined;
}

/** Lists what is routed to a connector and not served by it. */
export function listUnserved(
  serves: readonly string[],
  isRoutedHere: (method: string) => boolean,
): string[] {
  return [...PAYMENT_METHOD_IDS, ...RAIL_IDS, ...CRYPTO_METHODS].filter(
    (id) => isRoutedHere(id) && !serves.some((served) => served === id),
  );
}

/** Webhook of a bank, as it arrived. */
export interface WebhookRequest {
  headers: IncomingHttpHeaders;
  /** Exact bytes, which a signature covers. */
  body: Buffer;
  /** @throws WebhookRefused with 400 if the body is not JSON */
  json: () => unknown;
}

/** Refusal of a webhook; its message is the answer to the bank. */
export class WebhookRefused extends Error {
  override readonly name = 'WebhookRefused';

  readonly status: 400 | 401 | 403 | 413;

  constructor(status: 400 | 401 | 403 | 413, message: string) {
    super(message);
    this.status = status;
  }
}

interface SignedBody {
  body: Buffer | string;
  secret: string;
  /** Received signature, in hex. */
  signature: string | string[] | undefined;
}

/**
 * Requires the hex HMAC-SHA256 of the body.
 * @throws WebhookRefused with 401
 */
export function assertSigned({ body, secret, signature }: SignedBody): void {
  const expected = createHmac('sha256', secret).update(body).digest();
  const received = Buffer.from(typeof signature === 'string' ? signature : '', 'hex');
  if (received.length === expected.length && timingSafeEqual(received, expected)) return;
  throw new WebhookRefused(401, 'The signature is not valid.');
}
