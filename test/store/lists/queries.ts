import type { Stores } from '../../../src/store';
import { buildId, LARGE_MERCHANT } from '../../support/list-rows';

/** A page of the API has 50 rows; one more tells whether there is another page. */
const PAGE = 51;
const OPERATORS_PAGE = 200;
const OWNER = { account_id: LARGE_MERCHANT, livemode: false } as const;

const UNSENT = ['exhausted', 'pending'] as const;

/** Place in the store at which a query reads. */
interface Place {
  /** Number of a payment that the large merchant has. */
  n: number;
  /** Time from which the list goes back; undefined for its first page. */
  before: string | undefined;
}

export interface Query {
  name: string;
  read: (stores: Stores, place: Place) => Promise<readonly unknown[]>;
  /** Whether it sorts what an index selects, which stays little. */
  sorts?: true;
}

const page = (before: string | undefined) => ({ ...OWNER, before, limit: PAGE });

/** Lists of the API, each with the filters that narrow it. */
const LISTS: Query[] = [
  { name: 'payments', read: ({ payments }, { before }) => payments.list(page(before)) },
  ...[
    { status: 'settled' },
    { status: 'expired' },
    { status: 'authorized' },
    { method: 'visa' },
    { method: 'visa', status: 'settled' },
    { method: 'visa', status: 'authorized' },
  ].map((by) => ({
    name: `payments by ${words(by)}`,
    read: ({ payments }: Stores, { before }: Place) => payments.list({ ...page(before), ...by }),
  })),
  ...[{}, { status: 'settled' }, { method: 'visa' }, { method: 'visa', status: 'settled' }].map(
    (by) => ({
      name: `payments by reference${Object.keys(by).length === 0 ? '' : `, ${words(by)}`}`,
      read: ({ payments }: Stores, { n }: Place) =>
        payments.list({ ...page(undefined), ...by, reference: `order-${n}` }),
    }),
  ),
  { name: 'refunds', read: ({ refunds }, { before }) => refunds.list(page(before)) },
  ...['settled', 'failed', 'processing'].map((status) => ({
    name: `refunds by status ${status}`,
    read: ({ refunds }: Stores, { before }: Place) => refunds.list({ ...page(before), status }),
  })),
  ...[{}, { status: 'settled' }].map((by) => ({
    name: `refunds of a payment${Object.keys(by).length === 0 ? '' : `, ${words(by)}`}`,
    read: ({ refunds }: Stores, { n }: Place) =>
      refunds.list({ ...page(undefined), ...by, payment_id: buildId('payment', n) }),
  })),
  { name: 'payouts', read: ({ payouts }, { before }) => payouts.list(page(before)) },
  ...['completed', 'returned', 'sent'].map((status) => ({
    name: `payouts by status ${status}`,
    read: ({ payouts }: Stores, { before }: Place) => payouts.list({ ...page(before), status }),
  })),
];

const kinds = ['payments', 'refunds', 'payouts'] as const;

/** Lists of the dashboard beside those of the API. */
const DASHBOARD: Query[] = [
  {
    name: 'payouts by reference',
    read: ({ payouts }, { n }) => payouts.list({ ...page(undefined), reference: `order-${n}` }),
  },
  {
    name: 'payouts by method',
    read: ({ payouts }, { before }) => payouts.list({ ...page(before), method: 'sepa_instant' }),
  },
  {
    name: 'refunds by method',
    read: ({ refunds }, { before }) => refunds.list({ ...page(before), method: 'visa' }),
  },
  ...kinds.flatMap((kind): Query[] => [
    {
      name: `${kind} of the page before`,
      read: (stores, { before = '' }) => stores[kind].list({ ...page(undefined), after: before }),
    },
    {
      name: `${kind} between two times`,
      read: (stores, { before = '' }) =>
        stores[kind].list({ ...page(undefined), since: before, until: '9999' }),
    },
    {
      name: `${kind} in need`,
      read: (stores) => stores[kind].listNeedingAttention(OWNER.account_id, OWNER.livemode, PAGE),
    },
  ]),
  {
    name: 'events that are not delivered',
    read: ({ events }, { before }) => events.list({ ...page(before), statuses: UNSENT }),
  },
];

/** Lists of the command line, and of the hourly audit. */
const OPERATORS: Query[] = [
  { name: 'events', read: ({ events }, { before }) => events.list(page(before)) },
  {
    name: 'events of a resource',
    read: ({ events }, { n }) =>
      events.list({ ...page(undefined), resource_id: buildId('payment', n) }),
  },
  {
    name: 'events of a resource that are pending',
    read: ({ deliveries }, { n }) =>
      deliveries.pending(buildId('payment', n), LARGE_MERCHANT, false),
  },
  {
    name: 'deliveries that are late',
    read: async ({ deliveries }) => {
      const rows = [];
      for await (const row of deliveries.overdue('9999')) {
        if (rows.push(row) === OPERATORS_PAGE) break;
      }
      return rows;
    },
  },
  ...['payments', 'refunds', 'payouts'].map((kind) => ({
    name: `${kind} in flight`,
    read: (stores: Stores) => inFlight(stores, kind),
  })),
  {
    name: 'events to be sent again',
    read: ({ deliveries }, { before = '' }) =>
      deliveries.listResendable({ ...OWNER, since: before, until: '9999', statuses: UNSENT }, PAGE),
  },
  ...(['unsignalled', 'parked', 'any'] as const).map(
    (waits): Query => ({
      name: `callbacks that wait, ${waits}`,
      read: ({ callbacks }) => callbacks.waiting({ waits }).limit(PAGE).toArray(),
      sorts: true,
    }),
  ),
  {
    name: 'callbacks of a resource',
    read: ({ callbacks }, { n }) => callbacks.forResource(buildId('payment', n)),
  },
  { name: 'deliveries of an event', read: ({ deliveries }, { n }) => deliveries.forEvent(`${n}`) },
  { name: 'keys of an account', read: ({ keys }) => keys.forAccount(LARGE_MERCHANT) },
  { name: 'accounts', read: ({ accounts }) => accounts.list(PAGE) },
];

/** Every list that a merchant or an operator can ask for. */
export const QUERIES: readonly Query[] = [...LISTS, ...DASHBOARD, ...OPERATORS];

function inFlight(
  { payments, refunds, payouts }: Stores,
  kind: string,
): Promise<readonly unknown[]> {
  const store = kind === 'payments' ? payments : kind === 'refunds' ? refunds : payouts;
  return store.inFlight('', OPERATORS_PAGE).toArray();
}

function words(by: object): string {
  return Object.entries(by)
    .map(([field, value]) => `${field} ${value}`)
    .join(', ');
}
