import type { ComponentChildren } from 'preact';
import { isPaymentMethodId, methodRules, PAYMENT_METHOD_IDS } from '../../domain/catalogue';
import { ASSETS, cryptoMethod } from '../../domain/crypto';
import { decimalMoney, formatMoney } from '../../domain/money';
import { PAYMENT_STATUSES } from '../../domain/payment';
import { PAYOUT_STATUSES } from '../../domain/payout';
import { isRailId, RAIL_IDS, railRules } from '../../domain/rails';
import { REFUND_STATUSES } from '../../domain/refund';
import type { Stores } from '../../store';
import type { PaymentDocument } from '../../store/payments';
import type { PayoutDocument } from '../../store/payouts';
import type { RefundDocument } from '../../store/refunds';
import type { ListFilter, ResourceDocument } from '../../store/resource';
import { When } from '../parts';
import { Status } from '../status';
import type { CsvColumn } from './csv';

/** Filters of a list beside its place. */
interface Narrowed {
  status?: string | undefined;
  method?: string | undefined;
}

/** Text that no id is, by which rows of a kind are found. */
interface Searched {
  reference?: string;
  payment_id?: string;
  transaction_id?: string;
}

type Filter = ListFilter & Narrowed & Searched;

/** Facts by which one kind of resource is listed, shown and exported. */
export interface Kind<D extends ResourceDocument> {
  title: string;
  /** Path of the list; each row's page stands below it. */
  path: string;
  statuses: readonly string[];
  methods: readonly string[];
  /** Label of the choice among them. */
  methodLabel?: string;
  /** Words in the empty field `Search`. */
  hint: string;
  find: (stores: Stores, id: string, account_id: string, livemode: boolean) => Promise<D | null>;
  list: (stores: Stores, filter: Filter) => Promise<D[]>;
  export: (stores: Stores, filter: Omit<Filter, 'limit'>) => AsyncIterable<D>;
  /** Filter of rows that go by a text that is no id of theirs. */
  bySearch: (text: string) => Searched;
  columns: readonly (readonly [heading: string, cell: (row: D) => ComponentChildren])[];
  csv: readonly CsvColumn<D>[];
}

/** Resource whose amount is in minor units of a currency. */
type MoneyDocument = ResourceDocument & { amount: number };

/** Name of a payment method, a rail or a coin. */
export function methodName(method: string): string {
  if (isPaymentMethodId(method)) return methodRules(method).display_name;
  if (isRailId(method)) return railRules(method).display_name;
  return ASSETS.find((coin) => cryptoMethod(coin) === method)?.display_name ?? method;
}

/** Columns of every list. */
export const usual = {
  id: ['Id', ({ _id }: ResourceDocument) => <code>{_id}</code>],
  amount: ['Amount', ({ amount, currency }: MoneyDocument) => formatMoney(amount, currency)],
  status: ['Status', ({ status }: ResourceDocument) => <Status of={status} />],
  method: ['Method', ({ method }: ResourceDocument) => methodName(method)],
  created: ['Created', ({ created_at }: ResourceDocument) => <When at={created_at} />],
} as const;

/** Columns of a list of money, with the one that a kind has of its own. */
function columnsWith<D extends MoneyDocument>(own: Kind<D>['columns'][number]): Kind<D>['columns'] {
  return [usual.id, usual.amount, usual.status, usual.method, own, usual.created];
}

const facts: readonly CsvColumn<MoneyDocument>[] = [
  ['id', ({ _id }) => _id],
  ['created_at', ({ created_at }) => created_at],
  ['status', ({ status }) => status],
  ['amount', ({ amount, currency }) => decimalMoney(amount, currency)],
  ['currency', ({ currency }) => currency],
  ['method', ({ method }) => method],
  ['bank_reference', ({ bank_reference }) => bank_reference],
  ['failure_code', ({ failure }) => failure?.code],
];

export const PAYMENTS: Kind<PaymentDocument> = {
  title: 'Payments',
  path: '/payments',
  statuses: PAYMENT_STATUSES,
  methods: PAYMENT_METHOD_IDS,
  hint: 'Payment id or your reference',
  find: ({ payments }, ...owned) => payments.find(...owned),
  list: ({ payments }, filter) => payments.list(filter),
  export: ({ payments }, filter) => payments.export(filter),
  bySearch: (reference) => ({ reference }),
  columns: columnsWith(['Reference', ({ reference }) => reference ?? '–']),
  csv: [
    ...facts,
    ['reference', ({ reference }) => reference],
    ['country', ({ country }) => country],
    ['refunded', ({ refunded, currency }) => decimalMoney(refunded ?? 0, currency)],
    ['authorized_at', ({ authorized_at }) => authorized_at],
    ['settled_at', ({ settled_at }) => settled_at],
    ['cancelled_at', ({ cancelled_at }) => cancelled_at],
  ],
};

export const REFUNDS: Kind<RefundDocument> = {
  title: 'Refunds',
  path: '/refunds',
  statuses: REFUND_STATUSES,
  methods: PAYMENT_METHOD_IDS,
  hint: 'Refund id or payment id',
  find: ({ refunds }, ...owned) => refunds.find(...owned),
  list: ({ refunds }, filter) => refunds.list(filter),
  export: ({ refunds }, filter) => refunds.export(filter),
  bySearch: (payment_id) => ({ payment_id }),
  columns: columnsWith(['Reason', ({ reason }) => reason ?? '–']),
  csv: [
    ...facts,
    ['payment_id', ({ payment_id }) => payment_id],
    ['reason', ({ reason }) => reason],
    ['settled_at', ({ settled_at }) => settled_at],
  ],
};

export const PAYOUTS: Kind<PayoutDocument> = {
  title: 'Payouts',
  path: '/payouts',
  statuses: PAYOUT_STATUSES,
  methods: RAIL_IDS,
  hint: 'Payout id or your reference',
  find: ({ payouts }, ...owned) => payouts.find(...owned),
  list: ({ payouts }, filter) => payouts.list(filter),
  export: ({ payouts }, filter) => payouts.export(filter),
  bySearch: (reference) => ({ reference }),
  columns: columnsWith(['Reference', ({ reference }) => reference ?? '–']),
  csv: [
    ...facts,
    ['reference', ({ reference }) => reference],
    ['fee', ({ fee, currency }) => decimalMoney(fee, currency)],
    ['balance_account', ({ balance_account }) => balance_account],
    ['recipient_id', ({ recipient_id }) => recipient_id],
    ['sent_at', ({ sent_at }) => sent_at],
    ['completed_at', ({ completed_at }) => completed_at],
    ['return_reason', ({ returned }) => returned?.reason],
  ],
};
