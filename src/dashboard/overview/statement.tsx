import { decimalAmount, formatAmount, formatCurrency } from '../../domain/amount';
import {
  type ExportedLine,
  exportStatement,
  readStatement,
  type StatementBalance,
  type StatementLine,
} from '../../service/money/balances/statement';
import { Filters, Select } from '../frame/fields';
import { redirect } from '../frame/form';
import { Facts, Note, PageHead, Panel, Table, When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { type CsvColumn, csvStream } from '../resources/csv';
import { EXPORT_COST, runningExports } from '../resources/list';

export const STATEMENT_PATH = '/balances/statement';

export const STATEMENT_ROUTES: readonly Route[] = [
  viewRoute(STATEMENT_PATH, 'Statement', showStatement),
  { ...viewRoute(`${STATEMENT_PATH}.csv`, 'Statement', downloadStatement), cost: EXPORT_COST },
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

async function showStatement(call: Call, deps: PageDeps): Promise<Answer> {
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
      {balances.map((balance) => (
        <Balance key={`${balance.balance_account} ${balance.currency}`} balance={balance} />
      ))}
    </>
  );
}

function Balance({ balance }: { balance: StatementBalance }) {
  const { balance_account, currency, opening, closing, lines } = balance;
  const title = `${balance_account}, ${formatCurrency(currency)}`;
  return (
    <Panel title={title}>
      <Facts
        rows={[
          ['Opening balance', formatAmount(opening, currency)],
          ['Closing balance', formatAmount(closing, currency)],
        ]}
      />
      <Table
        label={`Lines of ${title}`}
        head={['Posted', 'Type', 'Reference', 'Gross', 'Fee', 'Net', 'Balance']}
        rows={lines.map((line, at) => ({ key: `${line.at} ${at}`, cells: listCells(line) }))}
        none="Nothing came or left in this month."
      />
    </Panel>
  );
}

function listCells(line: StatementLine) {
  const { at, type, source, currency, amount, fee, net, balance } = line;
  return [
    <When key="at" at={at} />,
    type.replaceAll('_', ' '),
    <code key="source">{source.id}</code>,
    ...[amount, fee, net, balance].map((money, index) => (
      <span key={index} class="number">
        {formatAmount(money, currency)}
      </span>
    )),
  ];
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

async function downloadStatement(call: Call, deps: PageDeps): Promise<Answer> {
  const { scope, viewer } = call;
  const month = readMonth(call);
  const download = runningExports.begin(scope.account_id, () =>
    csvStream(exportStatement(deps, scope, month), CSV_COLUMNS),
  );
  if (download === null) {
    const text = 'Other exports are still being read. Try again when one is done.';
    return redirect(call, `${STATEMENT_PATH}?month=${month}`, 'bad', text);
  }
  const filename = `statement-${viewer.env}-${month}.csv`;
  return { download, filename, type: 'text/csv; charset=utf-8; header=present' };
}
