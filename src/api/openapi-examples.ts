import { PAYMENT_CALLBACKS, PAYOUT_CALLBACKS, REFUND_CALLBACKS } from '../domain/callback/callback';
import { ASSETS, cryptoMethod } from '../domain/crypto/assets';
import { CRYPTO_SETTLEMENT_CALLBACKS } from '../domain/crypto/callback';
import { SIMULATED_DEPOSITS } from '../domain/crypto/simulation';
import { catalogEntry, methodRules, PAYMENT_METHOD_IDS } from '../domain/payment/catalog';
import { RAIL_IDS, type RailId, type RecipientField, railRules } from '../domain/payout/rails';
import { type EventType, eventIds } from '../domain/webhook/event';
import { SAMPLE_IDS, SAMPLE_PAYMENT } from '../domain/wire/samples';

export type Examples = Readonly<Record<string, { summary: string; value: object }>>;

/** Path segments that precede the id of a resource. */
const OWNERS = [
  ['/crypto/payments/', SAMPLE_IDS.crypto_payment],
  ['/crypto/settlements/', SAMPLE_IDS.crypto_settlement],
  ['/payments/', SAMPLE_IDS.payment],
  ['/refunds/', SAMPLE_IDS.refund],
  ['/payouts/', SAMPLE_IDS.payout],
  ['/payout-recipients/', SAMPLE_IDS.recipient],
] as const;

export function findSampleId(path: string): string | undefined {
  return OWNERS.find(([part]) => path.includes(`${part}{id}`))?.[1];
}

export function eventExample(type: EventType): object {
  const ids = new Map<string, string>(Object.entries(SAMPLE_IDS));
  const fields = eventIds(type).map((name) => [name, ids.get(name.replace(/_id$/, '')) ?? '']);
  return {
    id: 'evt_0a91b2c3-d4e5-4f60-8a7b-9c0d1e2f3a77',
    ...{ type, created: '2026-03-01T12:35:12.003Z', livemode: false },
    data: Object.fromEntries(fields),
  };
}

const RECIPIENT: Readonly<Record<RecipientField, string>> = {
  card_number: '4111111111111111',
  date_of_birth: '1985-12-10',
  iban: 'NL91ABNA0417164300',
  sort_code: '601613',
  account_number: '31926819',
  address_line1: 'Keizersgracht 1',
  city: 'Amsterdam',
  postal_code: '1015 CN',
};

/** Prefers a well-known currency. */
function pickCurrency({ currencies }: { currencies: readonly string[] }): string {
  return currencies.includes('EUR') ? 'EUR' : (currencies[0] ?? 'EUR');
}

function toExamples<const Name extends string>(
  names: readonly Name[],
  buildExample: (name: Name) => { summary: string; value: object },
): Examples {
  return Object.fromEntries(names.map((name) => [name, buildExample(name)]));
}

const PAYMENTS = toExamples(PAYMENT_METHOD_IDS, (method) => {
  const { display_name, countries, required_fields } = methodRules(method);
  const country = countries.includes(SAMPLE_PAYMENT.country)
    ? SAMPLE_PAYMENT.country
    : countries[0];
  const needsEmail = required_fields.includes('customer.email');
  const customer = needsEmail ? { customer: { email: 'ada@example.com' } } : {};
  const currency = pickCurrency(catalogEntry(method));
  return {
    summary: display_name,
    value: { ...SAMPLE_PAYMENT, method, currency, country, ...customer },
  };
});

const REFUNDS: Examples = {
  part: {
    summary: 'A part, with a reason',
    value: { payment_id: SAMPLE_IDS.payment, amount: 500, reason: 'One item came back.' },
  },
  rest: { summary: 'All that remains', value: { payment_id: SAMPLE_IDS.payment } },
};

function recipientFor(rail: RailId): object {
  const { recipient_type: type, required_fields } = railRules(rail);
  const expiry = type === 'card' ? { expiry_month: '12', expiry_year: '2099' } : {};
  const fields = required_fields.map((field) => [field, RECIPIENT[field]] as const);
  return {
    ...{ type, first_name: 'Ada', last_name: 'Lovelace' },
    ...Object.fromEntries(fields),
    ...expiry,
  };
}

const RECIPIENTS = toExamples(RAIL_IDS, (rail) => ({
  summary: `For ${railRules(rail).display_name}`,
  value: recipientFor(rail),
}));

const PAYOUTS = toExamples(RAIL_IDS, (method) => ({
  summary: railRules(method).display_name,
  value: {
    ...{ recipient_id: SAMPLE_IDS.recipient, method, amount: 1_000 },
    ...{ currency: pickCurrency(railRules(method)), reference: 'invoice-2002' },
  },
}));

const CRYPTO_PAYMENTS: Examples = Object.fromEntries(
  ASSETS.map(({ asset, network, display_name }) => [
    cryptoMethod({ asset, network }),
    {
      summary: display_name,
      value: { amount: 10_000, currency: 'EUR', asset, network, reference: 'order-1001' },
    },
  ]),
);

const CRYPTO_SETTLEMENTS: Examples = Object.fromEntries(
  ASSETS.map(({ asset, network, display_name }) => [
    cryptoMethod({ asset, network }),
    { summary: `The whole balance of ${display_name}`, value: { asset, network } },
  ]),
);

function reports(events: readonly string[]): Examples {
  const failure = { code: 'declined', reason: 'The bank said no.' };
  return toExamples(events, (event) => ({
    summary: `It is reported: ${event.replaceAll('_', ' ')}`,
    value: event === 'failed' ? { event, ...failure } : { event },
  }));
}

/** Examples by operation; the API accepts each one with real ids. */
export const BODY_EXAMPLES: Readonly<Record<string, Examples>> = {
  createPayment: PAYMENTS,
  cancelPayment: { cancel: { summary: 'Nothing has to be said', value: {} } },
  createRefund: REFUNDS,
  createRecipient: RECIPIENTS,
  createPayout: PAYOUTS,
  createCryptoPayment: CRYPTO_PAYMENTS,
  createCryptoSettlement: CRYPTO_SETTLEMENTS,
  simulatePayment: reports(PAYMENT_CALLBACKS),
  simulateRefund: reports(REFUND_CALLBACKS),
  simulatePayout: reports(PAYOUT_CALLBACKS),
  simulateCryptoPayment: {
    ...reports(SIMULATED_DEPOSITS),
    amount: { summary: 'A confirmed deposit of this amount', value: { amount: '1000' } },
  },
  simulateCryptoSettlement: reports(CRYPTO_SETTLEMENT_CALLBACKS),
};
