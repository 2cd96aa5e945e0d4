import { formatUnits } from '../../domain/crypto/assets';
import type { Deposit } from '../../domain/crypto/deposit';
import { formatMoney } from '../../domain/money';
import { buildCryptoPageUrl } from '../../encryption/pay-token';
import type { Documents } from '../../service/resources/list';
import { readResource } from '../../service/resources/read';
import { Facts, NeedsAttentionNote, PageHead, Panel, Status, Table, When } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { methodName } from '../resources/kinds';
import { Timeline } from '../resources/timeline';
import { CryptoTabs } from './kinds';

export const CRYPTO_PAYMENT_ROUTE: Route = {
  method: 'get',
  path: '/crypto/payments/:id',
  act: 'view',
  title: 'Crypto payment',
  handle: showPayment,
};

async function showPayment(call: Call, deps: PageDeps): Promise<Answer> {
  const { id = '' } = call.params;
  const result = await readResource(deps, 'crypto_payment', call.scope, id);
  if (result === null) return 'not_found';
  const { resource: payment, timeline } = result;
  const title = `Crypto payment of ${formatMoney(payment.amount, payment.currency)}`;
  const page = (
    <>
      <CryptoTabs call={call} />
      <PageHead title={title} badge={<Status of={payment.status} />} />
      <NeedsAttentionNote attention={payment.attention} />
      <Panel>
        <PaymentFacts
          payment={payment}
          payerPage={buildCryptoPageUrl(deps.publicUrl, deps.keys.pay_token, payment._id)}
        />
      </Panel>
      <Panel title="Deposits">
        <Deposits payment={payment} />
      </Panel>
      <Timeline entries={timeline} href={call.href} />
    </>
  );
  return { title, page };
}

function PaymentFacts({
  payment,
  payerPage,
}: {
  payment: Documents['crypto_payment'];
  payerPage: string;
}) {
  const { _id, currency, asset, rate } = payment;
  return (
    <Facts
      rows={[
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
      ]}
    />
  );
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
