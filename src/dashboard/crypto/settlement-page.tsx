import { formatUnits } from '../../domain/crypto/assets';
import { readResource } from '../../service/resources/read';
import { When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, viewRoute } from '../frame/route';
import { methodName } from '../resources/kinds';
import { answerResource, formatFailure } from '../resources/resource-page';
import { CryptoTabs } from './kinds';

export const CRYPTO_SETTLEMENT_ROUTE = viewRoute(
  '/crypto/settlements/:id',
  'Settlement',
  showSettlement,
);

async function showSettlement(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const result = await readResource(deps, 'crypto_settlement', call.scope, id);
  if (result === null) return 'not_found';
  const { resource: settlement, timeline } = result;
  return answerResource(call, {
    title: `Settlement of ${formatUnits(settlement.amount, settlement)}`,
    status: settlement.status,
    attention: settlement.attention,
    timeline,
    tabs: <CryptoTabs call={call} />,
    facts: [
      ['Id', <code key="id">{settlement._id}</code>],
      ['Coin', methodName(settlement.method)],
      ['Fee', formatUnits(settlement.fee, settlement)],
      ['Wallet', <code key="wallet">{settlement.wallet_address}</code>],
      ['Transaction', <code key="transaction">{settlement.transaction_id ?? '–'}</code>],
      ['Reason', formatFailure(settlement.failure)],
      ['Created', <When key="created" at={settlement.created_at} />],
      ['Completed', <When key="completed" at={settlement.completed_at} />],
    ],
  });
}
