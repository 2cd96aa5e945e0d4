import type { Texts } from './texts';

/** European Portuguese. */
export const pt: Texts = {
  name: 'Português',
  frame: {
    language: 'Idioma',
    secure: 'Página de pagamento segura.',
    secureOnce: 'Página de pagamento segura. Esta ligação só funciona uma vez.',
    backToShop: 'Voltar à loja',
    backTo: 'Voltar a {merchant}',
    reference: 'Referência',
  },
  pay: {
    sandbox: 'Ambiente de teste: não é movimentado dinheiro.',
    title: 'Pagar {amount} a {merchant}',
    summary: '{amount} a {merchant}',
    amount: 'Montante a pagar',
    method: 'Pagar com',
    payBy: 'Pagar até',
    cancel: 'Cancelar pagamento',
    cancelBusy: 'A cancelar…',
  },
  method: {
    continue: 'Continuar para {method}',
    opening: 'A abrir {method}',
    openingBusy: 'A abrir {method}…',
  },
  bank: {
    name: 'o seu banco',
    continue: 'Continuar para o seu banco',
    opening: 'A abrir o seu banco',
    openingBusy: 'A abrir o seu banco…',
  },
  wait: {
    progress: 'Aguarde',
    opening: 'O banco está a preparar o seu pagamento. Será encaminhado para lá.',
    openingLater: 'Está a demorar mais do que o habitual. Permaneça nesta página, por favor.',
    title: 'A aguardar a resposta do banco',
    answer: 'Esta página avança sozinha assim que o banco responder.',
    answerLater: 'Ainda sem resposta. Se não pagou, volte ao banco ou cancele o pagamento.',
    backToBank: 'Voltar ao banco',
  },
  transfer: {
    show: 'Mostrar os dados bancários',
    title: 'Pagar por transferência',
    holder: 'Titular da conta',
    reference: 'Descritivo da transferência',
    copy: 'Copiar',
    exactly:
      'Transfira exatamente este montante e indique o descritivo. Sem ele, a loja não consegue ' +
      'saber o que pagou.',
    confirmed:
      'O pagamento é confirmado quando a transferência chegar, normalmente no dia útil seguinte. ' +
      'Pode fechar esta página: avisamos a loja.',
    sent: 'Depois de enviar a transferência, não cancele o pagamento.',
  },
  outcome: {
    open: 'Este pagamento está em aberto',
    paid: 'Pagamento efetuado',
    failed: 'O pagamento não foi concluído',
    cancelled: 'O pagamento foi cancelado',
    expired: 'Este pagamento expirou',
  },
  notice: {
    unknown: {
      title: 'Este pagamento não existe',
      text: 'A ligação pode estar incompleta. Volte à loja e inicie de novo o pagamento.',
    },
    taken: {
      title: 'Esta ligação já foi utilizada',
      text:
        'Uma ligação de pagamento só funciona uma vez, no navegador que a abriu primeiro. ' +
        'Continue nesse navegador ou volte à loja e comece de novo.',
    },
    expired: {
      title: 'Esta ligação de pagamento expirou',
      text:
        'Já não é possível pagar aqui. Se acabou de pagar, não pague outra vez: o banco informa a ' +
        'loja. Caso contrário, volte à loja e comece de novo.',
    },
    ended: {
      title: 'Este pagamento está encerrado',
      text: 'A ligação já não funciona. Volte à loja para ver a sua encomenda.',
    },
    foreign: {
      title: 'Este pedido não veio desta página',
      text: 'Abra de novo a ligação de pagamento e utilize os botões da página.',
    },
    done: {
      title: 'Pode fechar esta página',
      text: 'O banco informa a loja automaticamente. A sua encomenda indica lá se está paga.',
    },
    trouble: {
      title: 'Esta página está indisponível de momento',
      text: 'O problema é nosso. Tente de novo dentro de instantes; não é possível pagar duas vezes.',
    },
  },
  crypto: {
    sandbox: 'Ambiente de teste: não envie fundos reais.',
    sendExactly: 'Envie exatamente',
    stillToSend: 'Falta enviar',
    qrCode: 'Código QR para uma carteira: {asset} em {network}',
    addressCode:
      'O código contém só o endereço: escolha {asset} em {network} na sua carteira e introduza o montante.',
    amountCode: 'Código com o montante, que nem todas as carteiras leem',
    networkAddress: 'Endereço {network}',
    copyAmount: 'Copiar montante',
    copyAddress: 'Copiar endereço',
    copied: 'Copiado',
    amountCopied: 'Montante copiado',
    addressCopied: 'Endereço copiado',
    selectToCopy:
      'Toque uma vez no montante ou no endereço para o selecionar por inteiro e copie-o depois.',
    openWallet: 'Abrir na carteira',
    onlyThisAsset:
      'Envie apenas {asset} na rede {network}. Tudo o resto pode perder-se. A taxa da rede é ' +
      'cobrada à parte.',
    timeLeft: 'Tempo restante',
    price: 'Preço',
    amountDue: 'Montante devido',
    cameSoFar: 'Recebido até agora',
    surplus: 'Enviou {amount} a mais. A loja vê esse valor: peça-lhe a devolução.',
    playPayer: 'Simular o pagamento',
    deposits: 'Montantes recebidos',
    confirmations: 'Confirmações',
    confirmationsOf: '{count} de {required} confirmações',
    confirmed: 'Confirmado',
    heldLate: 'Chegou tarde demais: contacte a loja',
    held: 'Em verificação',
    rejected: 'Não aceite: contacte a loja',
  },
  stage: {
    top_up: {
      title: 'Já recebemos parte do montante',
      text:
        'Envie o restante para o mesmo endereço antes de o tempo terminar. Não precisa de começar ' +
        'de novo.',
    },
    confirming: {
      title: 'O seu pagamento está a ser confirmado',
      text: 'Pode fechar esta página: nós informamos a loja.',
    },
    received: {
      title: 'Pagamento recebido',
      text: 'A loja foi informada. Pode fechar esta página.',
    },
    short: {
      title: 'O montante recebido a tempo é insuficiente',
      text:
        'Não envie mais nada, por favor. O seu dinheiro não está perdido: contacte a loja, que o ' +
        'pode aceitar ou devolver.',
    },
    held: {
      title: 'O seu pagamento está a ser verificado',
      text:
        'Não pague outra vez, por favor. Uma pessoa está a analisá-lo e a loja será informada do ' +
        'resultado.',
    },
    expired: {
      title: 'O tempo para pagar terminou',
      text:
        'Não envie mais nada para este endereço, por favor. Se acabou de pagar, não pague outra ' +
        'vez: nada está perdido e a loja pode ajudar. Caso contrário, comece de novo na loja.',
    },
  },
};
