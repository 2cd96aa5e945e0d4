import {
  ASSETS,
  bookCurrency,
  formatUnits,
  NETWORKS,
  type Network,
} from '../../domain/crypto/assets';
import { ServiceError } from '../../domain/errors';
import { type BalanceRow, readBalances } from '../../service/balances/read';
import { listWallets, type ShownWallet, setWallet } from '../../service/wallets';
import { Field } from '../frame/fields';
import { field, newFormKey } from '../frame/form';
import { Note, PageHead, Panel, PostForm, Table, When } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { CryptoTabs } from './kinds';
import { SETTLE_PATH } from './settle';

const PATH = '/crypto/wallets';

export const WALLET_ROUTES: readonly Route[] = [
  { method: 'get', path: PATH, act: 'view', title: 'Wallets', handle: showWallets },
  {
    method: 'post',
    path: PATH,
    act: 'wallets.change',
    title: 'Register a wallet',
    confirmation: {
      question: (form) =>
        `Settlements of every asset on ${field(form, 'network')} go to ${field(form, 'address')}. ` +
        'Assets that are sent to a wrong address are lost.',
      button: 'Register wallet',
      password: true,
    },
    handle: register,
  },
];

async function showWallets(call: Call, deps: PageDeps): Promise<Answer> {
  const { account_id, livemode } = call.scope;
  const [wallets, { balances }] = await Promise.all([
    listWallets(deps, account_id, livemode),
    readBalances(deps, call.scope),
  ]);
  const page = (
    <>
      <CryptoTabs call={call} />
      <PageHead title="Wallets" />
      <AssetBalances call={call} balances={balances} />
      {NETWORKS.map((network) => (
        <WalletPanel
          key={network}
          call={call}
          network={network}
          wallet={wallets.find((one) => one.network === network)}
        />
      ))}
    </>
  );
  return { page };
}

function AssetBalances({ call, balances }: { call: Call; balances: readonly BalanceRow[] }) {
  const rows = ASSETS.flatMap((cryptoAsset) => {
    const row = balances.find(({ currency }) => currency === bookCurrency(cryptoAsset));
    if (row === undefined) return [];
    const { asset, network } = cryptoAsset;
    return [
      {
        key: asset,
        cells: [
          cryptoAsset.display_name,
          formatUnits(BigInt(row.available), cryptoAsset),
          formatUnits(BigInt(row.reserved), cryptoAsset),
          call.may('crypto.settle') && row.available > 0 && (
            <PostForm
              key="settle"
              viewer={call.viewer}
              action={call.href(SETTLE_PATH)}
              button="Settle now"
              tone="plain"
              hidden={{ asset, network, key: newFormKey() }}
            />
          ),
        ],
      },
    ];
  });
  return (
    <Panel title="Balances of coins">
      <Table
        label="Balances of coins"
        head={['Coin', 'Available', 'Reserved', 'Act']}
        rows={rows}
        none="No crypto payments have been received yet."
      />
      <p class="muted small">Each balance is paid out to its wallet automatically every day.</p>
    </Panel>
  );
}

interface WalletPanelProps {
  call: Call;
  network: Network;
  wallet: ShownWallet | undefined;
}

function WalletPanel({ call, network, wallet }: WalletPanelProps) {
  const { viewer, href, may, scope, now } = call;
  return (
    <Panel title={`Wallet on ${network}`}>
      {wallet === undefined ? (
        <p class="muted">None is registered: its assets stay in their balances.</p>
      ) : (
        <p>
          <code>{wallet.address}</code>
        </p>
      )}
      {wallet !== undefined && wallet.counts_from > now.toISOString() && (
        <Note tone="note">
          {'It takes effect on '}
          <When at={wallet.counts_from} />
          {wallet.counting === null
            ? '; nothing is settled until then.'
            : `; until then settlements go to ${wallet.counting}.`}
        </Note>
      )}
      {may('wallets.change') && (
        <PostForm
          viewer={viewer}
          action={href(PATH)}
          button="Register wallet"
          tone="plain"
          hidden={{ network }}
        >
          <Field
            id={`address-${network}`}
            label={`Address on ${network}`}
            name="address"
            maxLength={100}
            hint={
              scope.livemode
                ? 'Its checksum is verified. It takes effect after 24 hours.'
                : 'Its checksum is verified.'
            }
            required
          />
        </PostForm>
      )}
    </Panel>
  );
}

async function register(call: Call, deps: PageDeps): Promise<Answer> {
  const { scope, form, href } = call;
  const network = NETWORKS.find((one) => one === field(form, 'network'));
  if (network === undefined) return 'not_found';
  const go = href(PATH);
  try {
    const address = field(form, 'address');
    const wallet = await setWallet(deps, { ...scope, network, address });
    const text =
      wallet.counting === wallet.address
        ? 'The wallet is registered.'
        : 'The wallet is registered, and takes effect after 24 hours.';
    return { go, flash: { tone: 'good', text } };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { go, flash: { tone: 'bad', text: `Nothing was changed: ${error.message}` } };
  }
}
