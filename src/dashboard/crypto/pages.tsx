import { formatUnits } from '../../domain/crypto/assets';
import type { Deposit } from '../../domain/crypto/deposit';
import { formatMoney } from '../../domain/money';
import { buildCryptoPageUrl } from '../../encryption/pay-token';
import { type Documents, readResource } from '../../service/resources/read';
import { Panel, Status, Table, When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, type Route, viewRoute } from '../frame/route';
import { methodName } from '../resources/kinds';
import { answerResource, formatFailure } from '../resources/resource-page';
import { CryptoTabs } from './kinds';

export const CRYPTO_PAGE_ROUTES: readonly Route[] = [
  viewRoute('/crypto/payments/:id', 'Crypto payment', showPayment),
  viewRoute('/crypto/settlements/:id', 'Settlement', showSettlement),
];

async function showPayment(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const result = await readResource(deps, 'crypto_payment', call.scope, id);
  if (result === null) return 'not_found';
  const { resource: payment, timeline } = result;
  const { _id, currency, asset, rate } = payment;
  const payerPage = buildCryptoPageUrl(deps.publicUrl, deps.keys.pay_token, _id);
  return answerResource(call, {
    title: `Crypto payment of ${formatMoney(payment.amount, currency)}`,
    status: payment.status,
    attention: payment.attention,
    timeline,
    tabs: <CryptoTabs call={call} />,
    facts: [
      ['Id', <code key="id">{_id}</code>],
      ['Reference', payment.reference ?? '–'],
      ['Coin', methodName(payment.method)],
      ['Due', formatUnits(payment.amount_due, payment)],
      ['Received', formatUnits(payment.amount_received, payment)],
      ['Rate', `${rate} ${currency} for 1 ${asset}`],
      ['Address', <code key="address">{payment.address}</code>],
      [
        'Page of the payer',
        <a key="page" href={payerPage} rel="noopener">
          {payerPage}
        </a>,
      ],
      ['Metadata', <code key="metadata">{payment.metadata}</code>],
      ['Created', <When key="created" at={payment.created_at} />],
      ['Window ends', <When key="expires" at={payment.expires_at} />],
      ['Received at', <When key="received" at={payment.received_at} />],
    ],
    children: (
      <Panel title="Deposits">
        <Deposits payment={payment} />
      </Panel>
    ),
  });
}

function Deposits({ payment }: { payment: Documents['crypto_payment'] }) {
  return (
    <Table
      label="Deposits"
      head={['Transaction', 'Amount', 'Status', 'Confirmations', 'Seen']}
      rows={payment.deposits.map((deposit) => ({
        key: deposit.transaction_id,
        cells: [
          <code key="id">{deposit.transaction_id}</code>,
          formatUnits(deposit.amount, payment),
          <span key="status">
            <Status of={deposit.status} /> {describeFlags(deposit)}
          </span>,
          `${deposit.confirmations} of ${deposit.required_confirmations}`,
          <When key="seen" at={deposit.seen_at} />,
        ],
      }))}
      none="No deposit was seen yet."
    />
  );
}

function describeFlags({ late, undone, screening }: Deposit): string {
  const flags = [late && 'late', undone && 'reorged', screening === 'failed' && 'failed screening'];
  return flags.filter((flag) => flag !== false).join(', ');
}

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
