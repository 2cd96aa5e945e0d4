import { Readable } from 'node:stream';
import type { ComponentChildren } from 'preact';
import { ASSETS, cryptoMethod } from '../../domain/crypto/assets';
import { decimalMoney, formatMoney } from '../../domain/money';
import { isPaymentMethodId, methodRules, PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { PAYMENT_STATUSES } from '../../domain/payment/payment';
import { PAYOUT_STATUSES } from '../../domain/payout/payout';
import { isRailId, RAIL_IDS, railRules } from '../../domain/payout/rails';
import { REFUND_STATUSES } from '../../domain/refund/refund';
import type { Documents, Kind, ResourceDocument } from '../../service/resources/read';
import { Status, When } from '../frame/parts';
import type { Call } from '../frame/route';

type CsvValue = string | number | null | undefined;

export type CsvColumn<D> = readonly [heading: string, value: (row: D) => CsvValue];

/** Builds the columns that have the names of their fields. */
export function fieldColumns<Name extends string>(...names: readonly Name[]) {
  return names.map(
    (name): CsvColumn<Partial<Record<Name, CsvValue>>> => [name, (row) => row[name]],
  );
}

/** First characters of a cell that a spreadsheet would run as a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const CHUNK_CHARS = 16 * 1_024;

/**
 * Streams rows as CSV (RFC 4180, UTF-8), so that memory stays constant; a reader that leaves ends
 * the query.
 */
export function csvStream<D>(rows: AsyncIterable<D>, columns: readonly CsvColumn<D>[]): Readable {
  return Readable.from(chunks(rows, columns), { objectMode: false });
}

async function* chunks<D>(rows: AsyncIterable<D>, columns: readonly CsvColumn<D>[]) {
  let text = line(columns.map(([heading]) => heading));
  for await (const row of rows) {
    text += line(columns.map(([, value]) => value(row)));
    if (text.length < CHUNK_CHARS) continue;
    yield text;
    text = '';
  }
  yield text;
}

function line(values: readonly CsvValue[]): string {
  return `${values.map(cell).join(',')}\r\n`;
}

/** Formats a cell; an apostrophe stops a spreadsheet from running it as a formula. */
export function cell(value: CsvValue): string {
  const text = value === null || value === undefined ? '' : String(value);
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Limits the running exports of each account in this process. */
export function createExports(max: number) {
  const countByAccount = new Map<string, number>();
  return {
    /**
     * Begins an export, which counts until its stream closes.
     * @returns null when the account is at its limit
     */
    begin: (account_id: string, open: () => Readable): Readable | null => {
      const others = countByAccount.get(account_id) ?? 0;
      if (others >= max) return null;
      const download = open();
      countByAccount.set(account_id, others + 1);
      download.once('close', () => {
        const remaining = (countByAccount.get(account_id) ?? 1) - 1;
        if (remaining === 0) countByAccount.delete(account_id);
        else countByAccount.set(account_id, remaining);
      });
      return download;
    },
  };
}

const PAGES: Readonly<Record<Kind, { noun: string; path: string }>> = {
  payment: { noun: 'payment', path: '/payments' },
  refund: { noun: 'refund', path: '/refunds' },
  payout: { noun: 'payout', path: '/payouts' },
  crypto_payment: { noun: 'crypto payment', path: '/crypto/payments' },
  crypto_settlement: { noun: 'settlement', path: '/crypto/settlements' },
};

export function ResourceLink({ call, kind, id }: { call: Call; kind: Kind; id: string }) {
  const { noun, path } = PAGES[kind];
  return (
    <a href={call.href(`${path}/${id}`)}>
      {`The ${noun} `}
      <code>{id}</code>
    </a>
  );
}

type Column<D> = readonly [heading: string, cell: (row: D) => ComponentChildren];

/** Fields by which one kind of resource is listed and exported. */
export interface ResourceList<K extends Kind> {
  kind: K;
  title: string;
  /** Path of the list; the page of a row is below it. */
  path: string;
  statuses: readonly string[];
  methods: readonly string[];
  methodLabel?: string;
  /** Placeholder of the search field. */
  hint: string;
  columns: readonly Column<Documents[K]>[];
  csv: readonly CsvColumn<Documents[K]>[];
}

type MoneyDocument = ResourceDocument & { amount: number };

export function methodName(method: string): string {
  if (isPaymentMethodId(method)) return methodRules(method).display_name;
  if (isRailId(method)) return railRules(method).display_name;
  return ASSETS.find((cryptoAsset) => cryptoMethod(cryptoAsset) === method)?.display_name ?? method;
}

export const commonColumns = {
  id: ['Id', ({ _id }: ResourceDocument) => <code>{_id}</code>],
  amount: ['Amount', ({ amount, currency }: MoneyDocument) => formatMoney(amount, currency)],
  status: ['Status', ({ status }: ResourceDocument) => <Status of={status} />],
  method: ['Method', ({ method }: ResourceDocument) => methodName(method)],
  created: ['Created', ({ created_at }: ResourceDocument) => <When at={created_at} />],
} as const;

function columnsWith<D extends MoneyDocument>(own: Column<D>): Column<D>[] {
  return [
    commonColumns.id,
    commonColumns.amount,
    commonColumns.status,
    commonColumns.method,
    own,
    commonColumns.created,
  ];
}

const commonCsvColumns: readonly CsvColumn<MoneyDocument>[] = [
  ['id', ({ _id }) => _id],
  ...fieldColumns('created_at', 'status'),
  ['amount', ({ amount, currency }) => decimalMoney(amount, currency)],
  ...fieldColumns('currency', 'method', 'bank_reference'),
  ['failure_code', ({ failure }) => failure?.code],
];

export const PAYMENTS: ResourceList<'payment'> = {
  kind: 'payment',
  title: 'Payments',
  path: '/payments',
  statuses: PAYMENT_STATUSES,
  methods: PAYMENT_METHOD_IDS,
  hint: 'Payment id or your reference',
  columns: columnsWith(['Reference', ({ reference }) => reference ?? '–']),
  csv: [
    ...commonCsvColumns,
    ...fieldColumns('reference', 'country'),
    ['refunded', ({ refunded, currency }) => decimalMoney(refunded ?? 0, currency)],
    ...fieldColumns('authorized_at', 'settled_at', 'cancelled_at'),
  ],
};

export const REFUNDS: ResourceList<'refund'> = {
  kind: 'refund',
  title: 'Refunds',
  path: '/refunds',
  statuses: REFUND_STATUSES,
  methods: PAYMENT_METHOD_IDS,
  hint: 'Refund id or payment id',
  columns: columnsWith(['Reason', ({ reason }) => reason ?? '–']),
  csv: [...commonCsvColumns, ...fieldColumns('payment_id', 'reason', 'settled_at')],
};

export const PAYOUTS: ResourceList<'payout'> = {
  kind: 'payout',
  title: 'Payouts',
  path: '/payouts',
  statuses: PAYOUT_STATUSES,
  methods: RAIL_IDS,
  hint: 'Payout id or your reference',
  columns: columnsWith(['Reference', ({ reference }) => reference ?? '–']),
  csv: [
    ...commonCsvColumns,
    ...fieldColumns('reference'),
    ['fee', ({ fee, currency }) => decimalMoney(fee, currency)],
    ...fieldColumns('balance_account', 'recipient_id', 'sent_at', 'completed_at'),
    ['return_reason', ({ returned }) => returned?.reason],
  ],
};
