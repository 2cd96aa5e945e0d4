import { formatUnits } from '../../domain/crypto/assets';
import { readResource } from '../../service/resources/read';
import { Facts, NeedsAttentionNote, PageHead, Panel, Status, When } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { methodName } from '../resources/kinds';
import { Timeline } from '../resources/timeline';
import { CryptoTabs } from './kinds';

export const CRYPTO_SETTLEMENT_ROUTE: Route = {
  method: 'get',
  path: '/crypto/settlements/:id',
  act: 'view',
  title: 'Settlement',
  handle: showSettlement,
};

async function showSettlement(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const result = await readResource(deps, 'crypto_settlement', call.scope, id);
  if (result === null) return 'not_found';
  const { resource: settlement, timeline } = result;
  const { amount, fee, failure } = settlement;
  const title = `Settlement of ${formatUnits(amount, settlement)}`;
  const page = (
    <>
      <CryptoTabs call={call} />
      <PageHead title={title} badge={<Status of={settlement.status} />} />
      <NeedsAttentionNote attention={settlement.attention} />
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
