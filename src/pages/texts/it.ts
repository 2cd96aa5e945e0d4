import type { Texts } from './texts';

export const it: Texts = {
  name: 'Italiano',
  frame: {
    language: 'Lingua',
    secure: 'Pagina di pagamento sicura.',
    secureOnce: 'Pagina di pagamento sicura. Questo link funziona una sola volta.',
    backToShop: 'Torna al negozio',
    backTo: 'Torna a {merchant}',
    reference: 'Riferimento',
  },
  pay: {
    sandbox: 'Ambiente di prova: non viene addebitato alcun importo.',
    title: 'Pagamento di {amount} a {merchant}',
    summary: '{amount} a {merchant}',
    amount: 'Importo da pagare',
    method: 'Metodo di pagamento',
    payBy: 'Da pagare entro',
    cancel: 'Annulla il pagamento',
    cancelBusy: 'Annullamento in corso…',
  },
  method: {
    continue: 'Continua con {method}',
    opening: 'Apertura di {method}',
    openingBusy: 'Apertura di {method}…',
  },
  bank: {
    name: 'la Sua banca',
    continue: 'Continua con la Sua banca',
    opening: 'Apertura della Sua banca',
    openingBusy: 'Apertura della Sua banca…',
  },
  wait: {
    progress: 'Attendere',
    opening: 'La banca sta preparando il pagamento. A breve sarà reindirizzato.',
    openingLater: 'L’operazione richiede più tempo del solito. La preghiamo di restare qui.',
    title: 'In attesa della risposta della banca',
    answer: 'La pagina prosegue da sola appena la banca risponde.',
    answerLater:
      'Ancora nessuna risposta. Se non ha pagato, torni alla banca o annulli il pagamento.',
    backToBank: 'Torna alla banca',
  },
  transfer: {
    show: 'Mostra le coordinate bancarie',
    title: 'Paga con bonifico',
    holder: 'Intestatario del conto',
    reference: 'Causale del bonifico',
    copy: 'Copia',
    exactly:
      'Trasferisca esattamente questo importo e indichi la causale. Senza di essa il negozio non ' +
      'può sapere che cosa ha pagato.',
    confirmed:
      'Il pagamento è confermato quando arriva il bonifico, di solito il giorno lavorativo ' +
      'successivo. Può chiudere questa pagina: avvisiamo noi il negozio.',
    sent: 'Dopo aver inviato il bonifico, non annulli il pagamento.',
  },
  outcome: {
    open: 'Questo pagamento è in corso',
    paid: 'Pagamento effettuato',
    failed: 'Il pagamento non è andato a buon fine',
    cancelled: 'Il pagamento è stato annullato',
    expired: 'Questo pagamento è scaduto',
  },
  notice: {
    unknown: {
      title: 'Questo pagamento non esiste',
      text: 'Il link potrebbe essere incompleto. Torni al negozio e ricominci il pagamento.',
    },
    taken: {
      title: 'Questo link è già stato utilizzato',
      text:
        'Un link di pagamento funziona una sola volta, nel browser che lo ha aperto per primo. ' +
        'Continui in quel browser, oppure torni al negozio e ricominci.',
    },
    expired: {
      title: 'Questo link di pagamento è scaduto',
      text:
        'Qui non è più possibile pagare. Se ha appena pagato, non paghi di nuovo: la banca ' +
        'informa il negozio. Altrimenti torni al negozio e ricominci.',
    },
    ended: {
      title: 'Questo pagamento è chiuso',
      text: 'Il link non è più valido. Torni al negozio per vedere il Suo ordine.',
    },
    foreign: {
      title: 'Questa richiesta non proviene da questa pagina',
      text: 'Apra di nuovo il link di pagamento e usi i pulsanti della pagina.',
    },
    done: {
      title: 'Può chiudere questa pagina',
      text: 'La banca informa da sé il negozio. Nel Suo ordine vedrà se risulta pagato.',
    },
    trouble: {
      title: 'La pagina non è al momento disponibile',
      text:
        'Il problema è nostro. La preghiamo di riprovare tra poco; non è possibile pagare due ' +
        'volte.',
    },
  },
  crypto: {
    sandbox: 'Ambiente di prova: non invii fondi reali.',
    sendExactly: 'Invii esattamente',
    stillToSend: 'Ancora da inviare',
    qrCode: 'Codice QR per un wallet: {asset} su {network}',
    addressCode:
      'Il codice contiene solo l’indirizzo: scelga {asset} su {network} nel wallet e inserisca l’importo.',
    amountCode: 'Codice con l’importo, che non tutti i wallet leggono',
    networkAddress: 'Indirizzo {network}',
    copyAmount: 'Copia importo',
    copyAddress: 'Copia indirizzo',
    copied: 'Copiato',
    amountCopied: 'Importo copiato',
    addressCopied: 'Indirizzo copiato',
    selectToCopy:
      'Prema una volta sull’importo o sull’indirizzo per selezionarlo tutto, poi lo copi.',
    openWallet: 'Apri nel wallet',
    onlyThisAsset:
      'Invii soltanto {asset} sulla rete {network}. Qualsiasi altra cosa può andare persa. La ' +
      'commissione di rete si paga a parte.',
    timeLeft: 'Tempo rimanente',
    price: 'Prezzo',
    amountDue: 'Importo dovuto',
    cameSoFar: 'Ricevuto finora',
    surplus:
      'Ha inviato {amount} in più del dovuto. Il negozio lo vede: ne chieda la restituzione.',
    playPayer: 'Simula il pagamento',
    deposits: 'Importi ricevuti',
    confirmations: 'Conferme',
    confirmationsOf: '{count} di {required} conferme',
    confirmed: 'Confermato',
    heldLate: 'Arrivato troppo tardi: contatti il negozio',
    held: 'In verifica',
    rejected: 'Non accettato: contatti il negozio',
  },
  stage: {
    top_up: {
      title: 'È arrivata una parte dell’importo',
      text: 'Invii il resto allo stesso indirizzo prima che scada il tempo. Non deve ricominciare.',
    },
    confirming: {
      title: 'Il pagamento è in fase di conferma',
      text: 'Può chiudere questa pagina: informiamo noi il negozio.',
    },
    received: {
      title: 'Pagamento ricevuto',
      text: 'Il negozio è stato informato. Può chiudere questa pagina.',
    },
    short: {
      title: 'L’importo arrivato in tempo non è sufficiente',
      text:
        'Non invii altro. Il Suo denaro non è perso: contatti il negozio, che può accettarlo o ' +
        'restituirlo.',
    },
    held: {
      title: 'Il pagamento è in verifica',
      text:
        'Non paghi di nuovo. Una persona lo sta controllando e il negozio sarà informato ' +
        'dell’esito.',
    },
    expired: {
      title: 'Il tempo per pagare è scaduto',
      text:
        'Non invii altro a questo indirizzo. Se ha appena pagato, non paghi di nuovo: nulla è ' +
        'perso e il negozio può aiutarLa. Altrimenti ricominci dal negozio.',
    },
  },
};
