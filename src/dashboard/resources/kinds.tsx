import type { ComponentChildren, VNode } from 'preact';
import { ASSETS, cryptoMethod } from '../../domain/crypto/assets';
import { decimalMoney, formatMoney } from '../../domain/money/money';
import { isPaymentMethodId, methodRules, PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { PAYMENT_STATUSES } from '../../domain/payment/payment';
import { PAYOUT_STATUSES } from '../../domain/payout/payout';
import { isRailId, RAIL_IDS, railRules } from '../../domain/payout/rails';
import { REFUND_STATUSES } from '../../domain/refund/refund';
import type {
  Documents,
  Kind,
  ReadResource,
  ResourceDocument,
} from '../../service/money/resources/read';
import type { TimelineEntryKind } from '../../service/money/resources/timeline';
import {
  Badge,
  type Column,
  type FactRow,
  Facts,
  Note,
  PageHead,
  Panel,
  Status,
  useCall,
  When,
} from '../frame/parts';
import type { Call } from '../frame/route';
import { type CsvColumn, fieldColumns } from './csv';

const PAGES: Readonly<Record<Kind, { noun: string; path: string }>> = {
  payment: { noun: 'payment', path: '/payments' },
  refund: { noun: 'refund', path: '/refunds' },
  payout: { noun: 'payout', path: '/payouts' },
  dispute: { noun: 'dispute', path: '/disputes' },
  crypto_payment: { noun: 'crypto payment', path: '/crypto/payments' },
  crypto_settlement: { noun: 'settlement', path: '/crypto/settlements' },
};

export function ResourceLink({ kind, id }: { kind: Kind; id: string }) {
  const call = useCall();
  const { noun, path } = PAGES[kind];
  return (
    <a href={call.href(`${path}/${id}`)}>
      {`The ${noun} `}
      <code>{id}</code>
    </a>
  );
}

export interface ResourceList<K extends Kind> {
  kind: K;
  title: string;
  path: string;
  statuses: readonly string[];
  methods: readonly string[];
  methodLabel?: string;
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

interface ResourcePage {
  title: string;
  attention?: string | null;
  /** Says what the status means. */
  note?: ComponentChildren;
  facts: readonly FactRow[];
  tabs?: ComponentChildren;
  children?: ComponentChildren;
}

export function answerResource(
  { href }: Call,
  { resource, timeline }: ReadResource<{ status: string }>,
  { title, attention = null, note, facts, tabs, children }: ResourcePage,
): { page: VNode; title: string } {
  const page = (
    <>
      {tabs}
      <PageHead title={title} badge={<Status of={resource.status} />} />
      {attention !== null && (
        <Note tone="note">{`Our operators look into it: ${attention.replaceAll('_', ' ')}.`}</Note>
      )}
      {note}
      <Panel>
        <Facts rows={facts} />
      </Panel>
      {children}
      <Panel title="Timeline">
        <ol class="timeline">
          {timeline.map((entry, at) => (
            <li key={at} class={entry.tone}>
              <div class="timeline-head">
                <Badge tone={entry.tone}>{NAMES[entry.kind]}</Badge>
                <strong>
                  {entry.kind === 'event' && entry.event_id !== undefined ? (
                    <a href={href(`/webhooks/deliveries/${entry.event_id}`)}>{entry.title}</a>
                  ) : (
                    entry.title
                  )}
                </strong>
                <span class="muted">
                  <When at={entry.at} />
                </span>
              </div>
              {entry.details.map((detail) => (
                <p key={detail} class="muted small">
                  {detail}
                </p>
              ))}
            </li>
          ))}
        </ol>
      </Panel>
    </>
  );
  return { title, page };
}

export function formatFailure(failure: { message: string; code: string } | null): string | null {
  return failure && `${failure.message} (${failure.code})`;
}

const NAMES: Readonly<Record<TimelineEntryKind, string>> = {
  call: 'API',
  callback: 'Bank',
  chain: 'Chain',
  act: 'Operator',
  transition: 'Status',
  entry: 'Ledger',
  event: 'Event',
  attempt: 'Webhook',
};
