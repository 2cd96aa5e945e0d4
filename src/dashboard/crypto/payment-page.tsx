import { formatUnits } from '../../domain/crypto';
import type { Deposit } from '../../domain/deposit';
import { formatMoney } from '../../domain/money';
import { cryptoPageUrl } from '../../keys/pay-token';
import type { CryptoPaymentDocument } from '../../store/crypto-payments';
import type { DashboardDeps } from '../deps';
import { Facts, InNeedNote, PageHead, Panel, Table, When } from '../parts';
import { methodName } from '../resources/kinds';
import type { Answer, Call, Route } from '../route';
import { Status } from '../status';
import { readTimeline } from '../timeline/read';
import { Timeline } from '../timeline/view';
import { CryptoTabs } from './tabs';

export const CRYPTO_PAYMENT_ROUTE: Route = {
  method: 'get',
  path: '/crypto/payments/:id',
  act: 'view',
  title: 'Crypto payment',
  handle: showPayment,
};

async function showPayment(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { stores, publicUrl, keys } = deps;
  const { account_id, livemode } = call.scope;
  const { id = '' } = call.params;
  const payment = await stores.crypto_payments.find(id, account_id, livemode);
  if (payment === null) return 'not_found';
  const timeline = await readTimeline(stores, 'crypto_payment', payment);
  const title = `Crypto payment of ${formatMoney(payment.amount, payment.currency)}`;
  const page = (
    <>
      <CryptoTabs call={call} />
      <PageHead title={title} badge={<Status of={payment.status} />} />
      <InNeedNote attention={payment.attention} />
      <Panel>
        <PaymentFacts
          payment={payment}
          payerPage={cryptoPageUrl(publicUrl, keys.pay_token, payment)}
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
  payment: CryptoPaymentDocument;
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

function Deposits({ payment }: { payment: CryptoPaymentDocument }) {
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
            <Status of={deposit.status} /> {marksOf(deposit)}
          </span>,
          `${deposit.confirmations} of ${deposit.required_confirmations}`,
          <When key="seen" at={deposit.seen_at} />,
        ],
      }))}
      none="None was seen yet."
    />
  );
}

function marksOf({ late, undone, screening }: Deposit): string {
  const marks = [
    late && 'came late',
    undone && 'undone by the chain',
    screening === 'failed' && 'failed screening',
  ];
  return marks.filter((mark) => mark !== false).join(', ');
}
