import { formatUnits } from '../../domain/crypto';
import type { DashboardDeps } from '../deps';
import { Facts, InNeedNote, PageHead, Panel, When } from '../parts';
import { methodName } from '../resources/kinds';
import type { Answer, Call, Route } from '../route';
import { Status } from '../status';
import { readTimeline } from '../timeline/read';
import { Timeline } from '../timeline/view';
import { CryptoTabs } from './tabs';

export const CRYPTO_SETTLEMENT_ROUTE: Route = {
  method: 'get',
  path: '/crypto/settlements/:id',
  act: 'view',
  title: 'Settlement',
  handle: showSettlement,
};

async function showSettlement(call: Call, { stores }: DashboardDeps): Promise<Answer> {
  const { account_id, livemode } = call.scope;
  const { id = '' } = call.params;
  const settlement = await stores.crypto_settlements.find(id, account_id, livemode);
  if (settlement === null) return 'not_found';
  const timeline = await readTimeline(stores, 'crypto_settlement', settlement);
  const { amount, fee, failure } = settlement;
  const title = `Settlement of ${formatUnits(amount, settlement)}`;
  const page = (
    <>
      <CryptoTabs call={call} />
      <PageHead title={title} badge={<Status of={settlement.status} />} />
      <InNeedNote attention={settlement.attention} />
      <Panel>
        <Facts
          rows={[
            ['Id', <code key="id">{settlement._id}</code>],
            ['Coin', methodName(settlement.method)],
            ['Fee', formatUnits(fee, settlement)],
            ['Wallet', <code key="wallet">{settlement.wallet_address}</code>],
            ['Transaction', <code key="transaction">{settlement.transaction_id ?? '–'}</code>],
            ...(failure === null
              ? []
              : ([['Reason', `${failure.message} (${failure.code})`]] as const)),
            ['Created', <When key="created" at={settlement.created_at} />],
            ['Completed', <When key="completed" at={settlement.completed_at} />],
          ]}
        />
      </Panel>
      <Timeline entries={timeline} href={call.href} />
    </>
  );
  return { title, page };
}
