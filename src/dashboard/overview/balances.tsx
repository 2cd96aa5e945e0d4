import { MAIN_BALANCE } from '../../domain/account/balance-account';
import { formatAmount, formatCurrency } from '../../domain/amount';
import { type BalanceRow, readBalances } from '../../service/balances/read';
import { Note, PageHead, Panel, Table } from '../frame/parts';
import { type Answer, type Call, type PageDeps, viewRoute } from '../frame/route';

export const BALANCES_ROUTE = viewRoute('/balances', 'Balances', showBalances);

async function showBalances({ scope }: Call, deps: PageDeps): Promise<Answer> {
  const { balances, receivables } = await readBalances(deps, scope);
  return {
    page: (
      <>
        <PageHead title="Balances" />
        {receivables.map(({ currency, owed }) => (
          <Note key={currency} tone="bad">
            {`You owe ${formatAmount(owed, currency)}: a bank took back more than the balance held.`}
          </Note>
        ))}
        <Panel>
          <BalanceTable balances={balances} />
          <p class="muted small">
            Available money can be refunded and paid out. Reserved money belongs to payouts in
            progress.
          </p>
        </Panel>
      </>
    ),
  };
}

export function BalanceTable({ balances }: { balances: readonly BalanceRow[] }) {
  return (
    <Table
      label="Balances"
      head={['Balance account', 'Currency', 'Available', 'Reserved']}
      rows={balances.map(({ balance_account, currency, available, reserved }) => ({
        key: `${balance_account} ${currency}`,
        cells: [
          balance_account,
          formatCurrency(currency),
          formatAmount(available, currency),
          formatAmount(reserved, currency),
        ],
      }))}
      none={`Nothing yet: ${MAIN_BALANCE} is there, and empty.`}
    />
  );
}
