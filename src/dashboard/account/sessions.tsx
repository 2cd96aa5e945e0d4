import {
  endOtherSession,
  endOtherSessions,
  type ListedSession,
  listSessions,
  signOutEverywhere,
} from '../../service/merchants/team/sessions';
import { field, redirect } from '../frame/form';
import { Badge, Panel, PostForm, type Row, Table, When } from '../frame/parts';
import { type Answer, type Call, getSelf, type PageDeps, type Route } from '../frame/route';

const PROFILE = '/profile';
const PATH = `${PROFILE}/sessions`;

const selfPost = { act: 'self.change', method: 'post', whileFrozen: true } as const;

export const SESSION_ROUTES: readonly Route[] = [
  { ...selfPost, path: `${PATH}/end`, title: 'End a session', handle: endOne },
  { ...selfPost, path: `${PATH}/end-others`, title: 'End all other sessions', handle: endOthers },
  {
    ...selfPost,
    path: `${PROFILE}/sign-out-everywhere`,
    title: 'Sign out everywhere',
    confirmation: {
      question: 'All your sessions end, this one too.',
      button: 'Sign out everywhere',
    },
    handle: endAll,
  },
];

export async function loadSessions(call: Call, deps: PageDeps): Promise<ListedSession[]> {
  return await listSessions(deps, call.viewer.user.id);
}

interface SessionsPanelProps {
  call: Call;
  sessions: readonly ListedSession[];
}

export function SessionsPanel({ call, sessions }: SessionsPanelProps) {
  return (
    <Panel title="Sessions">
      <p class="muted">End those that you do not know, and change your password then.</p>
      <Table
        label="Sessions"
        head={['Browser', 'Network', 'Since', 'Last seen', 'Act']}
        rows={sessions.map((session) => toRow(call, session))}
        none="There are no sessions."
      />
      <div class="inline">
        {sessions.length > 1 && (
          <PostForm
            {...{ call, path: `${PATH}/end-others`, class: 'inline' }}
            button="End all other sessions"
            tone="danger"
          />
        )}
        <PostForm
          {...{ call, path: `${PROFILE}/sign-out-everywhere`, class: 'inline' }}
          button="Sign out everywhere"
          tone="danger"
        />
      </div>
    </Panel>
  );
}

function toRow(call: Call, { id, browser, network, created_at, seen_at }: ListedSession): Row {
  return {
    key: id,
    cells: [
      browser,
      network ?? <span class="muted">–</span>,
      <When key="since" at={created_at.toISOString()} />,
      <When key="seen" at={seen_at.toISOString()} />,
      id === call.viewer.session ? (
        <Badge key="this" tone="good">
          This browser
        </Badge>
      ) : (
        <PostForm
          key="end"
          {...{ call, path: `${PATH}/end`, class: 'inline', hidden: { session: id } }}
          button="End session"
          tone="danger"
        />
      ),
    ],
  };
}

async function endOne(call: Call, deps: PageDeps): Promise<Answer> {
  const id = field(call.form, 'session');
  // Sign-out also clears this browser's cookie.
  if (id === call.viewer.session) return 'not_found';
  const isEnded = await endOtherSession(deps, getSelf(call), id);
  const text = isEnded ? 'The session is ended.' : 'The session has ended already.';
  return redirect(call, PROFILE, 'good', text);
}

async function endOthers(call: Call, deps: PageDeps): Promise<Answer> {
  await endOtherSessions(deps, getSelf(call), call.viewer.session);
  return redirect(call, PROFILE, 'good', 'All your other sessions are ended.');
}

async function endAll(call: Call, deps: PageDeps): Promise<Answer> {
  await signOutEverywhere(deps, getSelf(call));
  return { go: '/dashboard/sign-in' };
}
