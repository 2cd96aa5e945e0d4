import type { Document } from 'mongodb';
import type { PaymentStatus } from '../../domain/payment';
import type { PayoutStatus } from '../../domain/payout';
import type { RefundStatus } from '../../domain/refund';
import type { PaymentDocument } from '../../store/payments';
import type { PayoutDocument } from '../../store/payouts';
import type { RefundDocument } from '../../store/refunds';
import type { PostingDocument } from '../book';
import { bookId, LEGS, type Leg, type PostingKind, type ResourcePosting } from '../postings';
import { returnedAmount, settledAmount } from '../steps';
import { type Difference, difference, unlessSame } from './compare';
import { type Pass, pairOf, pass, theOne } from './pass';

/** Fields that the check needs of every resource. */
type Common = Pick<PaymentDocument, 'account_id' | 'livemode' | 'currency'> & { status: string };

/** Postings of a state; a function where more than the state decides. */
type Called<Part, Kind> = readonly Kind[] | ((part: Part) => readonly Kind[]);

/** Postings that the ledger must hold for the resources of one collection. */
interface ResourceRule<Part extends Common, Kind extends PostingKind> {
  collection: string;
  /** Fields of the document that decide. */
  fields: readonly (keyof Part & string)[];
  /** Postings that each state calls for, each once. */
  postings: Record<Part['status'], Called<Part, Kind>>;
  legs: Record<Kind, (part: Part) => Leg[]>;
}

interface ResourceRow<Part> {
  _id: string;
  resource: Part | null;
  postings: Pick<PostingDocument, '_id' | 'kind' | 'book' | 'legs'>[];
}

type PaymentPart = Pick<
  PaymentDocument,
  keyof Common | 'amount' | 'connector' | 'settled_amount' | 'late' | 'clawed_back'
>;
type RefundPart = Pick<RefundDocument, keyof Common | 'amount' | 'connector' | 'settled_amount'>;
type PayoutPart = Pick<
  PayoutDocument,
  keyof Common | 'amount' | 'connector' | 'fee' | 'balance_account' | 'sent_at' | 'returned_amount'
>;

const COMMON = ['account_id', 'livemode', 'currency', 'status'] as const;

/** Postings of a payment that has ended unsettled: of money that came all the same. */
const lateOf = ({ late }: PaymentPart): ResourcePosting<'payment'>[] => {
  if (!late) return [];
  return late.reversed_at === null
    ? ['payment_late_received']
    : ['payment_late_received', 'payment_late_reversed'];
};

const PAYMENTS: ResourceRule<PaymentPart, ResourcePosting<'payment'>> = {
  collection: 'payments',
  fields: [...COMMON, 'amount', 'connector', 'settled_amount', 'late', 'clawed_back'],
  postings: {
    created: [],
    awaiting_customer: [],
    authorized: [],
    settled: ({ clawed_back }) =>
      clawed_back ? ['payment_settled', 'payment_clawed_back'] : ['payment_settled'],
    failed: lateOf,
    cancelled: lateOf,
    expired: lateOf,
  } satisfies Record<PaymentStatus, Called<PaymentPart, PostingKind>>,
  legs: {
    payment_settled: (payment) => LEGS.payment_settled(payment.connector, settledAmount(payment)),
    payment_late_received: ({ connector, late }) =>
      LEGS.payment_late_received(connector, late?.amount ?? 0),
    payment_late_reversed: ({ connector, late }) =>
      LEGS.payment_late_reversed(connector, late?.amount ?? 0),
    payment_clawed_back: ({ connector, clawed_back }) =>
      LEGS.payment_clawed_back(connector, clawed_back?.held ?? 0, clawed_back?.owed ?? 0),
  },
};

const REFUNDS: ResourceRule<RefundPart, ResourcePosting<'refund'>> = {
  collection: 'refunds',
  fields: [...COMMON, 'amount', 'connector', 'settled_amount'],
  postings: {
    processing: ['refund_accepted'],
    settled: ['refund_accepted', 'refund_settled'],
    failed: ['refund_accepted', 'refund_failed'],
  } satisfies Record<RefundStatus, readonly PostingKind[]>,
  legs: {
    refund_accepted: ({ amount }) => LEGS.refund_accepted(amount),
    refund_settled: (refund) =>
      LEGS.refund_settled(refund.connector, refund.amount, settledAmount(refund)),
    refund_failed: ({ amount }) => LEGS.refund_failed(amount),
  },
};

const RESERVED = ['payout_reserved'] as const;
const CAPTURED = [...RESERVED, 'payout_captured'] as const;

const PAYOUTS: ResourceRule<PayoutPart, ResourcePosting<'payout'>> = {
  collection: 'payouts',
  fields: [
    ...COMMON,
    'amount',
    'connector',
    'fee',
    'balance_account',
    'sent_at',
    'returned_amount',
  ],
  postings: {
    created: RESERVED,
    submitted: RESERVED,
    sent: CAPTURED,
    completed: CAPTURED,
    failed: ({ sent_at }) =>
      sent_at === null ? [...RESERVED, 'payout_released'] : [...CAPTURED, 'payout_reversed'],
    returned: [...CAPTURED, 'payout_returned'],
  } satisfies Record<PayoutStatus, Called<PayoutPart, PostingKind>>,
  legs: {
    payout_reserved: ({ balance_account, amount, fee }) =>
      LEGS.payout_reserved(balance_account, amount, fee),
    payout_captured: ({ balance_account, connector, amount, fee }) =>
      LEGS.payout_captured(balance_account, connector, amount, fee),
    payout_released: ({ balance_account, amount, fee }) =>
      LEGS.payout_released(balance_account, amount, fee),
    payout_reversed: ({ balance_account, connector, amount, fee }) =>
      LEGS.payout_reversed(balance_account, connector, amount, fee),
    payout_returned: (payout) =>
      LEGS.payout_returned(payout.balance_account, payout.connector, returnedAmount(payout)),
  },
};

interface RefundedRow {
  _id: string;
  /** Amount of the payment, and its count of refunds. */
  counted: { amount: number; refunded: number } | null;
  /** Sum of its refunds that are processing or settled. */
  sum: number;
}

/** Check of the count of refunds, over payments and refunds that bear on it. */
const REFUNDED = pass<RefundedRow>(
  'refunds',
  [
    { $match: { status: { $in: ['processing', 'settled'] satisfies RefundStatus[] } } },
    { $project: { _id: '$payment_id', amount: { $ifNull: ['$settled_amount', '$amount'] } } },
    ...pairOf(
      'payments',
      [
        { $match: { refunded: { $nin: [0, null] } } },
        { $project: { counted: { amount: '$amount', refunded: '$refunded' } } },
      ],
      { counted: theOne('counted'), sum: { $sum: '$amount' } },
    ),
  ],
  compareRefunded,
);

/** Passes that hold resources against their postings; each resource that moves money has one. */
export const RESOURCE_PASSES: readonly Pass[] = [
  resourcePass(PAYMENTS),
  resourcePass(REFUNDS),
  resourcePass(PAYOUTS),
  REFUNDED,
];

/** Pass that pairs every resource with the postings of its kinds; either may be missing. */
function resourcePass<Part extends Common, Kind extends PostingKind>(
  rule: ResourceRule<Part, Kind>,
): Pass {
  const { collection, fields, legs } = rule;
  const part: Document = Object.fromEntries(fields.map((field) => [field, `$${field}`]));
  const posting = { _id: '$_id', kind: '$kind', book: '$book', legs: '$legs' };
  return pass<ResourceRow<Part>>(
    'ledger_postings',
    [
      { $match: { kind: { $in: Object.keys(legs) } } },
      { $project: { _id: '$resource_id', posting } },
      ...pairOf(collection, [{ $project: { resource: part } }], {
        resource: theOne('resource'),
        postings: { $push: '$posting' },
      }),
    ],
    (row) => compareResource(rule, row),
  );
}

/** Pure: differences between the postings that the state calls for and those that are there. */
function compareResource<Part extends Common, Kind extends PostingKind>(
  { postings: byState, legs }: ResourceRule<Part, Kind>,
  { _id, resource, postings }: ResourceRow<Part>,
): Difference[] {
  if (resource === null) {
    return postings.map((posting) => difference('resource_missing', _id, posting._id, _id, null));
  }
  const states = new Map<string, Called<Part, Kind>>(Object.entries(byState));
  const called = states.get(resource.status) ?? [];
  const wanted = typeof called === 'function' ? called(resource) : called;
  const matched = new Set<string>();
  const differences = wanted.flatMap((kind): Difference[] => {
    const expected = describe(bookId(resource), legs[kind](resource));
    const found = postings.find((posting) => posting.kind === kind);
    if (found === undefined) return [difference('posting_missing', _id, kind, expected, null)];
    matched.add(found._id);
    return unlessSame(
      'posting_differs',
      _id,
      found._id,
      expected,
      describe(found.book, found.legs),
    );
  });
  const extra = postings.filter((posting) => !matched.has(posting._id));
  return [
    ...differences,
    ...extra.map(({ _id: id, book, legs: found }) =>
      difference('posting_extra', _id, id, null, describe(book, found)),
    ),
  ];
}

/** Pure: differences of a payment's count of refunds from its refunds, and from its amount. */
function compareRefunded({ _id, counted, sum }: RefundedRow): Difference[] {
  const refunded = counted?.refunded ?? 0;
  const exceeds = counted !== null && refunded > counted.amount;
  return [
    ...unlessSame('refunded_differs', _id, 'refunded', sum, refunded),
    ...(exceeds
      ? [difference('refunded_exceeds', _id, 'refunded', `at most ${counted.amount}`, refunded)]
      : []),
  ];
}

/** Text of legs, sorted, since their order does not matter, and of their book. */
function describe(book: string, legs: PostingDocument['legs']): string {
  const each = legs.map(({ account, amount }) => `${account} ${amount}`).sort();
  return `${each.join(', ')} in ${book}`;
}
