import { randomInt, randomUUID } from 'node:crypto';
import { inTransaction } from '../../src/base/mongo';
import { buildPosition } from '../../src/domain/cursor';
import { type DisputeAnswer, disputeInstructionId } from '../../src/domain/dispute/dispute';
import type { Evidence } from '../../src/domain/dispute/evidence';
import { methodRules, type PaymentMethodId } from '../../src/domain/payment/catalog';
import { RAILS, type RailId } from '../../src/domain/payout/rails';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import { createRecipientEncrypters } from '../../src/encryption/recipient-keys';
import { buildMovement } from '../../src/movements/register';
import type { CheckDeps, CheckInput } from '../../src/service/banks/connector-check';
import { type DisputeDocument, disputeId, evidenceOwner } from '../../src/store/disputes';
import type { PaymentDocument } from '../../src/store/payments';
import type { PayoutDocument } from '../../src/store/payouts';
import { recipientOwner } from '../../src/store/recipients';
import type { RefundDocument } from '../../src/store/refunds';
import type {
  DisputeInstruction,
  PayoutInstruction,
  RefundInstruction,
  ReversalInstruction,
  SessionInstruction,
} from '../contract/activities';
import { need } from './verdict';

const AMOUNT = 1_000;
const SESSION_MS = 1_800_000;

/** Personal data that must reach the bank and nothing else. */
const RECIPIENT: RecipientDetails = {
  type: 'bank_account',
  first_name: 'Zephyrine',
  last_name: 'Quackenbush',
  card_number: '4111111111111111',
  expiry_month: '12',
  expiry_year: '2039',
  date_of_birth: '1961-07-29',
  iban: 'DE89370400440532013000',
  bic: 'COBADEFFXXX',
  sort_code: '200000',
  account_number: '55779911',
  address_line1: '9000 Larkspur Close',
  city: 'Wolverhampton',
  postal_code: 'WV1 9ZZ',
  country: 'DE',
  email: 'zephyrine@example.com',
  reference: null,
  parent_payment_reference: null,
};
const EVIDENCE: Evidence = {
  ...{ explanation: 'Zephyrine Quackenbush has signed for it.', customer_reference: 'Larkspur' },
  ...{ shipped_at: null, carrier: null, tracking_number: null, refund_reference: null },
};
export const PERSONAL = [
  ...['Zephyrine', 'Quackenbush', 'Larkspur', 'zephyrine@'],
  ...['DE89370400440532013000', '4111111111111111', '55779911'],
];

export type Documents = ReturnType<typeof createDocuments>;

type Deps = Pick<CheckDeps, 'mongo' | 'stores' | 'database' | 'keysDir' | 'now'>;

export function createDocuments(
  deps: Deps,
  input: Pick<CheckInput, 'connector' | 'methods' | 'rails'>,
  accounts: { open: string; frozen: string },
) {
  const { mongo, stores } = deps;
  const ids: { payout: string[]; refund: string[]; payment: string[] } = {
    ...{ payout: [], refund: [], payment: [] },
  };
  const buildCommon = (account_id: string) => {
    const created_at = deps.now().toISOString();
    return {
      ...{
        _id: randomUUID(),
        account_id,
        livemode: false,
        version: 1,
        transition: 1,
        failure: null,
        metadata: '{}',
      },
      ...{ position: buildPosition(Date.parse(created_at), randomInt(1_000_000)), reference: null },
      ...{ created_at, updated_at: created_at, due_at: created_at, connector: input.connector },
      ...{ bank_reference: null, attention: null, request_id: 'connector-check', audit: [] },
    };
  };
  const insertRecipient = async (account_id: string, isDeleted: boolean): Promise<string> => {
    const _id = randomUUID();
    const encrypter = createRecipientEncrypters(deps.keysDir).sandbox;
    const details = { ...RECIPIENT, type: RAILS[getRail(input.rails)].recipient_type };
    const ciphertext = await encrypter.encrypt(JSON.stringify(details), recipientOwner(_id));
    const at = deps.now().toISOString();
    await stores.recipients.insert({
      ...{ _id, account_id, livemode: false, type: details.type, scheme: null, has: [] },
      ...{ card_expires: null, iban_in_sepa: true, last4: '3000' },
      ...(isDeleted
        ? { ciphertext: null, kid: null }
        : { ciphertext, kid: encrypter.getKid(ciphertext) }),
      ...{ created_at: at, used_at: at, request_id: 'connector-check' },
    } as Parameters<typeof stores.recipients.insert>[0]);
    return _id;
  };
  const insertPayment = async (changes: Partial<PaymentDocument> = {}) => {
    const { method, currency } = getMethod(input.methods);
    const expires_at = new Date(deps.now().getTime() + SESSION_MS).toISOString();
    const document: PaymentDocument = {
      ...{ ...buildCommon(accounts.open), status: 'awaiting_customer', amount: AMOUNT },
      ...{ method, currency, country: null, customer: { reference: null, ciphertext: null } },
      ...{ refunded: 0, authorized_at: null, settled_at: null, cancelled_at: null, expires_at },
      ...{ success_url: 'https://shop.example/', error_url: 'https://shop.example/' },
      ...{ session_url: null, token_hash: randomUUID(), browser_hash: null, opened_at: null },
      ...changes,
    };
    ids.payment.push(document._id);
    await inTransaction(mongo, (session) => stores.payments.insert(document, session));
    return document;
  };
  const write = async (
    resource: keyof typeof ids | 'dispute',
    _id: string,
    values: { status?: string; transition?: number; bank_reference?: string },
  ): Promise<void> => {
    const rows = mongo.db(deps.database).collection<{ _id: string }>(`${resource}s`);
    await rows.updateOne({ _id }, { $set: values });
  };
  return {
    ids,
    /** Puts the database's epoch forward, as a worker does, or back, as a restore. */
    setEpoch: async (at: Date): Promise<void> => {
      const { installation } = await stores.epoch.raise(at.toISOString());
      const epochs = mongo.db(deps.database).collection('service_epoch');
      await epochs.updateOne({ installation }, { $set: { at: at.toISOString() } });
    },
    /** Releases the connector as an operator does. */
    release: async (stop_id: string): Promise<void> => {
      const released_at = deps.now().toISOString();
      const about = { connector: input.connector, livemode: false, released_at };
      const release = { _id: stop_id, ...about, operator: null, reason: 'The check.' };
      await inTransaction(mongo, async (session) => {
        await stores.connectorReleases.insert(release, session);
      });
    },
    makePayment: async (of = AMOUNT): Promise<SessionInstruction> => {
      const payment = await insertPayment({ amount: of });
      const { _id, amount, currency, method, country, expires_at } = payment;
      const facts = { amount, currency, method, country, livemode: false, expires_at };
      return { payment_id: _id, ...facts, return_url: 'https://shop.example/return' };
    },
    /** @returns instruction to send the money back */
    endLate: async (payment_id: string, bank_reference: string): Promise<ReversalInstruction> => {
      await write('payment', payment_id, { status: 'cancelled', bank_reference });
      const payment = await stores.payments.get(payment_id);
      if (payment === null) throw new Error(`The payment ${payment_id} is not there.`);
      const { amount, currency } = payment;
      const source = { kind: 'callback', id: `check:${payment_id}` } as const;
      const report = { source, direction: 'in', bank_reference, amount, currency } as const;
      const late = buildMovement(payment, report, {
        ...{ resource: 'payment', at: deps.now().toISOString(), order: payment.version },
        ...{ reason: 'late', clashes: 0 },
      });
      const entry = `check:${payment_id}`;
      await inTransaction(mongo, (session) => stores.movements.insert({ ...late, entry }, session));
      return { payment_id, instruction_id: `reversal:${payment_id}`, amount, currency };
    },
    makeRefund: async (amount = AMOUNT): Promise<RefundInstruction> => {
      const { method, currency } = getMethod(input.methods);
      const payment = await insertPayment({ status: 'settled', bank_reference: 'CHECK-PAYMENT' });
      const document: RefundDocument = {
        ...{ ...buildCommon(accounts.open), status: 'processing', amount, method, currency },
        ...{ payment_id: payment._id, payment_bank_reference: payment.bank_reference },
        ...{ reason: null, settled_at: null },
      };
      ids.refund.push(document._id);
      await inTransaction(mongo, (session) => stores.refunds.insert(document, session));
      const { payment_id, payment_bank_reference } = document;
      const facts = { payment_id, payment_bank_reference, amount, currency, method };
      return { refund_id: document._id, version: 1, ...facts, livemode: false };
    },
    makePayout: async (
      amount = AMOUNT,
      of: { isDeleted?: boolean; isFrozen?: boolean } = {},
    ): Promise<PayoutInstruction> => {
      const method = getRail(input.rails);
      const currency = pickCurrency(RAILS[method].currencies);
      const account_id = of.isFrozen ? accounts.frozen : accounts.open;
      const document: PayoutDocument = {
        ...{ ...buildCommon(account_id), status: 'created', amount, fee: 0, method, currency },
        ...{ recipient_id: await insertRecipient(account_id, of.isDeleted === true) },
        ...{ balance_account: 'main', returned: null, sent_at: null, completed_at: null },
      };
      ids.payout.push(document._id);
      await inTransaction(mongo, (session) => stores.payouts.insert(document, session));
      return { payout_id: document._id, version: 1, amount, currency, method, livemode: false };
    },
    /** @returns instruction to answer a dispute of the payment, which the bank has opened */
    makeDispute: async (
      payment_id: string,
      of: {
        bank_dispute_id: string;
        answering: DisputeAnswer;
        evidence_due_at?: string | undefined;
      },
    ): Promise<DisputeInstruction> => {
      const { bank_dispute_id, answering, evidence_due_at = null } = of;
      const { method, currency } = getMethod(input.methods);
      const _id = disputeId(payment_id, bank_dispute_id);
      const encrypter = createRecipientEncrypters(deps.keysDir).sandbox;
      const ciphertext = await encrypter.encrypt(JSON.stringify(EVIDENCE), evidenceOwner(_id));
      const document: DisputeDocument = {
        ...{ ...buildCommon(accounts.open), _id, payment_id, name: bank_dispute_id },
        ...{ kind: 'dispute_opened', status: 'needs_response', amount: AMOUNT, fee: 0 },
        ...{ method, currency, reason: null, evidence_due_at, evidence_submitted_at: null },
        ...{ closed_at: null, transfers: [], answering },
        evidence: { ciphertext, fingerprint: _id, kid: encrypter.getKid(ciphertext) },
      };
      await inTransaction(mongo, (session) => stores.disputes.insert(document, session));
      const instruction_id = disputeInstructionId(_id, answering);
      const names = { instruction_id, dispute_id: _id, payment_id, bank_dispute_id };
      return { ...names, version: 1, livemode: false };
    },
    change: write,
  };
}

function getRail(rails: readonly RailId[]): RailId {
  return need(rails[0], 'No rail is routed to the connector.');
}

function getMethod(methods: readonly PaymentMethodId[]) {
  const method = need(methods[0], 'No payment method is routed to the connector.');
  return { method, currency: pickCurrency(methodRules(method).currencies) };
}

function pickCurrency(currencies: readonly string[]): string {
  return currencies.includes('EUR') ? 'EUR' : (currencies[0] ?? 'EUR');
}
