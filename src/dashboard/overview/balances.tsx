import {
  decimalAmount,
  formatAmount,
  formatCurrency,
  MAIN_BALANCE,
} from '../../domain/money/money';
import {
  type ExportedLine,
  exportStatement,
  readStatement,
} from '../../service/money/balances/list';
import { type ProvedBalance, readProvedBalances } from '../../service/money/read';
import { Filters, Select } from '../frame/fields';
import { Facts, Note, PageHead, Panel, Table, When } from '../frame/parts';
import { type Call, type Route, viewRoute } from '../frame/route';
import { type CsvColumn, csvStream } from '../resources/csv';
import { exportRoute } from '../resources/list';

const STATEMENT_PATH = '/balances/statement';

export const BALANCE_ROUTES: readonly Route[] = [
  viewRoute('/balances', 'Balances', async ({ scope, href }, deps) => {
    const { balances, receivables } = await readProvedBalances(deps, scope);
    return (
      <>
        <PageHead title="Balances">
          <a class="button plain" href={href(STATEMENT_PATH)}>
            Statement
          </a>
        </PageHead>
        {receivables.map(({ currency, owed }) => (
          <Note key={currency} tone="bad">
            {`You owe ${formatAmount(owed, currency)}: a bank took back more than the balance held.`}
          </Note>
        ))}
        <Panel>
          <BalanceTable balances={balances} />
          <p class="muted small">
            Available money can be refunded and paid out. Reserved money belongs to payouts in
            progress. Our banks have stated every movement until the day in the last column.
          </p>
        </Panel>
      </>
    );
  }),
  viewRoute(STATEMENT_PATH, 'Statement', async (call, deps) => {
    const month = readMonth(call);
    const { balances, isCut } = await readStatement(deps, call.scope, month);
    const path = call.href(STATEMENT_PATH);
    const { account, env } = call.viewer;
    return (
      <>
        <PageHead title="Statement">
          <a class="button plain" href={`${path}.csv?month=${month}`} download>
            Download CSV
          </a>
        </PageHead>
        <Panel>
          <p>{`${account.name} (${account.id}), ${env}: ${formatMonth(month)}, in UTC.`}</p>
          <Filters action={path}>
            <Select
              label="Month"
              name="month"
              value={month}
              options={listMonths(call.now).map((each) => [each, formatMonth(each)])}
            />
          </Filters>
        </Panel>
        {isCut && (
          <Note tone="note">
            The CSV has all lines of this month. The closing balances count them.
          </Note>
        )}
        {balances.length === 0 && (
          <Panel>
            <p class="empty">Nothing was available, came or left until the end of this month.</p>
          </Panel>
        )}
        {balances.map(({ balance_account, currency, opening, closing, lines }) => {
          const title = `${balance_account}, ${formatCurrency(currency)}`;
          return (
            <Panel key={title} title={title}>
              <Facts
                rows={[
                  ['Opening balance', formatAmount(opening, currency)],
                  ['Closing balance', formatAmount(closing, currency)],
                ]}
              />
              <Table
                label={`Lines of ${title}`}
                rows={lines}
                columns={[
                  ['Posted', ({ at }) => <When at={at} />],
                  ['Type', ({ type }) => type.replaceAll('_', ' ')],
                  ['Reference', ({ source }) => <code>{source.id}</code>],
                  ['Gross', ({ amount }) => <Amount of={amount} currency={currency} />],
                  ['Fee', ({ fee }) => <Amount of={fee} currency={currency} />],
                  ['Net', ({ net }) => <Amount of={net} currency={currency} />],
                  ['Balance', ({ balance }) => <Amount of={balance} currency={currency} />],
                ]}
                none="Nothing came or left in this month."
              />
            </Panel>
          );
        })}
      </>
    );
  }),
  exportRoute(STATEMENT_PATH, 'Statement', (call, deps) => {
    const month = readMonth(call);
    return {
      open: () => csvStream(exportStatement(deps, call.scope, month), CSV_COLUMNS),
      name: 'statement',
      period: month,
      back: `${STATEMENT_PATH}?month=${month}`,
    };
  }),
];

const MONTHS_MAX = 24;

function listMonths(now: Date): string[] {
  return Array.from({ length: MONTHS_MAX }, (_, before) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - before)).toISOString().slice(0, 7),
  );
}

function readMonth({ query, now }: Call): string {
  const [current = '', ...earlier] = listMonths(now);
  return earlier.find((month) => month === query.get('month')) ?? current;
}

function formatMonth(month: string): string {
  const options = { month: 'long', year: 'numeric', timeZone: 'UTC' } as const;
  return new Intl.DateTimeFormat('en', options).format(new Date(`${month}-01T00:00:00Z`));
}

export function BalanceTable({ balances }: { balances: readonly ProvedBalance[] }) {
  return (
    <Table
      label="Balances"
      rows={balances}
      columns={[
        ['Balance account', ({ balance_account }) => balance_account],
        ['Currency', ({ currency }) => formatCurrency(currency)],
        ['Available', ({ available, currency }) => formatAmount(available, currency)],
        ['Reserved', ({ reserved, currency }) => formatAmount(reserved, currency)],
        ['Pending', ({ pending, currency }) => formatAmount(pending ?? 0, currency)],
        ['Proved until', ({ proved_until }) => proved_until ?? '–'],
      ]}
      none={`Nothing yet: ${MAIN_BALANCE} is there, and empty.`}
    />
  );
}

function Amount({ of, currency }: { of: bigint; currency: string }) {
  return <span class="number">{formatAmount(of, currency)}</span>;
}

const CSV_COLUMNS: readonly CsvColumn<ExportedLine>[] = [
  ['posted_at', ({ at }) => at],
  ['balance_account', ({ balance_account }) => balance_account],
  ['currency', ({ currency }) => formatCurrency(currency)],
  ['type', ({ type }) => type],
  ['reference_type', (line) => ('source' in line ? line.source.object : null)],
  ['reference', (line) => ('source' in line ? line.source.id : null)],
  ['gross', (line) => ('amount' in line ? buildDecimal(line.amount, line) : null)],
  ['fee', (line) => ('fee' in line ? buildDecimal(line.fee, line) : null)],
  ['net', (line) => ('net' in line ? buildDecimal(line.net, line) : null)],
  ['balance', (line) => buildDecimal(line.balance, line)],
];

function buildDecimal(amount: bigint, { currency }: ExportedLine) {
  return { decimal: decimalAmount(amount, currency) };
}
