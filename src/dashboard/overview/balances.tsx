import { MAIN_BALANCE } from '../../domain/balance-account';
import type { BalanceRow } from '../../ledger/book';
import { amountText, currencyText } from '../amounts';
import type { DashboardDeps } from '../deps';
import { Note, PageHead, Panel, Table } from '../parts';
import type { Answer, Call, Route } from '../route';

export const BALANCES_ROUTE: Route = {
  method: 'get',
  path: '/balances',
  act: 'view',
  title: 'Balances',
  handle: showBalances,
};

async function showBalances({ scope }: Call, { stores }: DashboardDeps): Promise<Answer> {
  const { account_id, livemode } = scope;
  const [balances, receivables] = await Promise.all([
    stores.ledger.balances(account_id, livemode),
    stores.ledger.receivables(account_id, livemode),
  ]);
  return {
    page: (
      <>
        <PageHead title="Balances" />
        {receivables.map(({ currency, owed }) => (
          <Note key={currency} tone="bad">
            {`You owe ${amountText(owed, currency)}: a bank took back more than the balance held.`}
          </Note>
        ))}
        <Panel>
          <BalanceTable balances={balances} />
          <p class="muted small">
            Available money can be refunded and paid out. Reserved money belongs to payouts that are
            on their way.
          </p>
        </Panel>
      </>
    ),
  };
}

/** Table of an account's balances, by name and currency. */
export function BalanceTable({ balances }: { balances: readonly BalanceRow[] }) {
  return (
    <Table
      label="Balances"
      head={['Balance account', 'Currency', 'Available', 'Reserved']}
      rows={balances.map(({ balance_account, currency, available, reserved }) => ({
        key: `${balance_account} ${currency}`,
        cells: [
          balance_account,
          currencyText(currency),
          amountText(available, currency),
          amountText(reserved, currency),
        ],
      }))}
      none={`Nothing yet: ${MAIN_BALANCE} is there, and empty.`}
    />
  );
}
