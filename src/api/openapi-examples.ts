import { PAYMENT_CALLBACKS, PAYOUT_CALLBACKS, REFUND_CALLBACKS } from '../domain/callback';
import { catalogueEntry, methodRules, PAYMENT_METHOD_IDS } from '../domain/catalogue';
import { ASSETS, cryptoMethod } from '../domain/crypto';
import { CRYPTO_SETTLEMENT_CALLBACKS } from '../domain/crypto-callback';
import { SIMULATED_DEPOSITS } from '../domain/crypto-simulation';
import { type EventType, eventIds } from '../domain/event';
import { RAIL_IDS, type RailId, type RecipientField, railRules } from '../domain/rails';
import { SAMPLE_PAYMENT } from '../domain/sample-payment';

/** Examples of a body by their names, as OpenAPI has them. */
export type Examples = Readonly<Record<string, { summary: string; value: object }>>;

/** Ids that stand in the examples; those of a real body come from earlier answers. */
export const SAMPLE_IDS = {
  payment: '5f0b6a52-1d0c-4c39-9d3b-6c6f0f6a2b11',
  refund: '8c2a4d0e-7b1f-4a56-8f2d-0d6f3c9b7e22',
  recipient: 'b7d3e1c4-3f68-4b0a-a1c9-2e5d7f804c33',
  payout: 'd94f2b7a-6c05-4e18-b3f7-91a0c8e65d44',
  crypto_payment: 'e16c8f39-0a7d-4d2b-8c54-7b3e9f1d0a55',
  crypto_settlement: 'f3a95d10-8e42-4176-9b6a-4c0d2e7f8b66',
} as const;

/** Parts of paths behind which the id of a resource stands. */
const OWNERS = [
  ['/crypto/payments/', SAMPLE_IDS.crypto_payment],
  ['/crypto/settlements/', SAMPLE_IDS.crypto_settlement],
  ['/payments/', SAMPLE_IDS.payment],
  ['/refunds/', SAMPLE_IDS.refund],
  ['/payouts/', SAMPLE_IDS.payout],
  ['/payout-recipients/', SAMPLE_IDS.recipient],
] as const;

/** Example of the id that a path takes; undefined where it takes none. */
export function sampleIdOf(path: string): string | undefined {
  return OWNERS.find(([part]) => path.includes(`${part}{id}`))?.[1];
}

/** Example of the body of a webhook. */
export function eventExample(type: EventType): object {
  const ids = new Map<string, string>(Object.entries(SAMPLE_IDS));
  const named = eventIds(type).map((name) => [name, ids.get(name.replace(/_id$/, '')) ?? '']);
  return {
    id: 'evt_0a91b2c3-d4e5-4f60-8a7b-9c0d1e2f3a77',
    ...{ type, created: '2026-03-01T12:35:12.003Z', livemode: false },
    data: Object.fromEntries(named),
  };
}

/** Minor units in a payout's example, of any currency. */
export const PAYOUT_AMOUNT = 1_000;

/** Values of the fields that rails ask for. */
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

/** A currency of a method or rail that readers know, where it has one. */
function currencyOf({ currencies }: { currencies: readonly string[] }): string {
  return currencies.includes('EUR') ? 'EUR' : (currencies[0] ?? 'EUR');
}

function named<const Name extends string>(
  names: readonly Name[],
  exampleOf: (name: Name) => { summary: string; value: object },
): Examples {
  return Object.fromEntries(names.map((name) => [name, exampleOf(name)]));
}

const PAYMENTS = named(PAYMENT_METHOD_IDS, (method) => {
  const { display_name, countries, required_fields } = methodRules(method);
  const country = countries.includes(SAMPLE_PAYMENT.country)
    ? SAMPLE_PAYMENT.country
    : countries[0];
  const needsEmail = required_fields.includes('customer.email');
  const customer = needsEmail ? { customer: { email: 'ada@example.com' } } : {};
  const currency = currencyOf(catalogueEntry(method));
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
  const asked = required_fields.map((field) => [field, RECIPIENT[field]] as const);
  return {
    ...{ type, first_name: 'Ada', last_name: 'Lovelace' },
    ...Object.fromEntries(asked),
    ...expiry,
  };
}

const RECIPIENTS = named(RAIL_IDS, (rail) => ({
  summary: `For ${railRules(rail).display_name}`,
  value: recipientFor(rail),
}));

const PAYOUTS = named(RAIL_IDS, (method) => ({
  summary: railRules(method).display_name,
  value: {
    ...{ recipient_id: SAMPLE_IDS.recipient, method, amount: PAYOUT_AMOUNT },
    ...{ currency: currencyOf(railRules(method)), reference: 'invoice-2002' },
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

/** Reports of a bank, one for each event; a failure says why. */
function reports(events: readonly string[]): Examples {
  const why = { code: 'declined', reason: 'The bank said no.' };
  return named(events, (event) => ({
    summary: `It is reported: ${event.replaceAll('_', ' ')}`,
    value: event === 'failed' ? { event, ...why } : { event },
  }));
}

/** Examples of the bodies, by operation; each is taken by the API once its ids are real. */
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
