// Written by bench/tokenizers/unicode_tables.py: sets of characters of Unicode 16.0 by name.
#include "kintsugi/text/unicode_tables.h"

// clang-format off
namespace kintsugi::text {

const UnicodeSet kUnicodeSets4[] = {
    {"odi otherdefaultignorablecodepoint ", "b#j0Zkk0[kJ4kjV6ljB3,jZkraWFsjl/7lblGoiYk"},
    {"ogam ogham ", "0cl."},
    {"ogrext othergraphemeextend ",
     "JAkj+jiqj+jDlj+j8ojljoklktkElj+jUljzjI7kj;jZ(jpjljpkCljRkkE)jZ1lk7EyjJljMctk6DljRljeojyjtj7ljtjmjllpj0ojwjHo"
     "jcoj4xjwjA>j09tkIEvkqobBYr5l"},
    {"oidc otheridcontinue ", "3nj0zjG0lrL[jB@kE6ljC4,j"},
    {"oids otheridstart ", "M4mkY3kj(jYgkk"},
    {"oldpermic perm ", "9Z<|"},
    {"oldpersian xpeo ", "ia<@ow"},
    {"oldsogdian sogo ", "VB>_"},
    {"oldturkic orkh ", "Sd=Rk"},
    {"olduyghur ougr ", "8E>+"},
    {"olonal onao ", "XIGk|oj"},
    {"olower otherlowercase ",
     "Zmjzj7urrk;n7lj8kjcVkjFOkHkxj@[Fyjxj!vWnyd#+4}kXJykVnjellnkC$mtjeSujmll{lrJG-Gk"},
    {"omath othermath ",
     "4ljR$lmj-kmk1Pmj.lvj=m+kykLkvojnkon$jojmsljnnqjnkmklllonmpnVknmmlklkljlnmkoko!mkljlpljqkLpmYmklj+j#jfskwrpnp"
     "kmknnyjljmo+kDkjlj:mtkSqk<sir&Jkm=kCc,jljojWnjljGe,dklPklkmjmkmmluljlplJklmmqlpl-lmlnljnplOqm*l*l:l*l:l*l:l*"
     "l:l*lqm4k8Zlml,lkljmjlslmljljqjojljljlllkljmjljljljljlkljmmlplmlmljlslzpllnlz"},
    {"openpunctuation ps ",
     "`j6kj<jeckjljg{j19kjnj_jBkjzj5xjlj;j7*jljljljljljljakj=jljljljlj0sjljljljljljljljljljljKkjlj>jR)jljljlj,j$jl"
     "jljljOsjljljljljnjljljljmjif+janj:jljljljljljljljnj#jljljamj6kj<jnjmj"},
    {"oriya orya ", "RHkllqmkm&lplklnmrmkmlrloklnm!"},
    {"osage osge ", "1h<@o@"},
    {"osma osmanya ", "hf</ms"},
    {"otherpunctuation po ",
     "=lllmjljlkuknk.jOkjpjykrjSyjsjHto|jAkjmjmj0kk&klkxjllUkmDlj~w9olAkx<jbokuj6mjVljWljVrjwj8rj1ljukYmxljNljUkno"
     "kMlobmjSwr9!jZllRkkNmlll^olmipkbnkdlploQmkup/lZlmFknIkkKkqvjP#ksqsrmmmlntljlsWQkmlkNlj9mkolmjmrlkljmkunlsmml"
     "jlvmlOslDkjAnjiTxk0plAljujQloLrmgkk{llj5kk3kj8lv!kZlmblk!kPojEHtpmj)j&kmmnllmrlqjlkFmlllmjljlkuknk.j]jmk6sld"
     "xj4kjAsjOzjKnj<j3pr_jNlpMkp0lm8&n0kmAnpKlklmblm4kkZkmojxjllikoIljTpklkPlnukljFljQo(Gll/vWkjfllSojeolLmj3lqdk"
     "lln4lsanj6ln}kGxkUkvfmjC+nGKkkWHqkiljLknsjDvlQpmDqjPVsj6Zmn7Kkj8$k"},
    {"othersymbol so ",
     "VmjmjojljX&jgokclkRnjuj%kNojLujErjfloljhljSnj|jWrlzjllmo&jljljilqlolkpmInkXzs4zj3zjNm=dqstrH;klmlkujlkqoljlj"
     "ljojvkyjlkljEkktnmmlklklpl:mkljl:ioqo$mpmZkl/,_qQk)tbkWk)2nlrl8ksKllMo0k}KkUoIu2k(kq^m;lEl5oohqk2k+lhkwXn-yo"
     "jxkwj(kqkMqkos=]tj!:v/sjz;u^z4qNBmIkLgt9kB$mukljYvlfKtyclj1klZtjnjokxkiprDkzmllvnj3k~d[k7wjfPkjc3kqozFNsmpjX"
     "CtjPgkEo!UsMmPlGkKou^mEkpl)kr/oFk(Kknj7nfkO,GuBkm6kqlwlkR^jTJkjelj2z}o9lwxmxlxl[*PmCk.x}orrkyoKmPop7zoznvnSl"
     "o4lquojzuoAkssq_s/muokIkOqwwmvnspAkrxmtqrrBml1l"},
    {"otheruppercase oupper ", "d9nyT#+29Dk+q+q+"},
    {"p punct punctuation ",
     "=llolmuknk-llj.jlj[jpjnjuknjnjSyjsjHto|k7kjljmjmj0kk&klkxjllUkmDlj~w9olAkx<jbokuj6mjVljWljVrjwj8rj1ljukYmxlj"
     "^mRkjUknokMlobmjSwrHmjbwj0kkYklRkkNmlll^tipkbnkdlploQmkup/lZlmFknIkkKkqvjJ#)s$lvlu;kyk4xm:k6*wZkk<sir&Jkm=ki"
     "zmlkNlj9m1kl;muFslosmu!jwj9lj1ljiTxk0plAljujQloLrmgkk{llj5kk3kj8lv!kZlmblk!kPojTCtkTns)>lwljojlkFmllolmuknk-"
     "llj.jljlp6sldxj4kjAsjOzjKnj<j3pr_jNlpMkp0lmGtj4qjXmn0kmAnpKlklmblm4kkZkmojxjllikoIljTpklkPlnukljFljQo(Gll/vW"
     "kjfllSojeolLmj3lqdklln4lsanj6ln}kGxkUkvfmjC+nGKkkWHqkiljLknsjDvlQpmDqjPVsj6Zmn7Kkj8$k"},
    {"paragraphseparator zp ", "h2nj"},
    {"patsyn patternsyntax ", "=xup-mlj-m@pljlkljlkojojnj*j<jffm)sxm#lsapiyQmiw;6+IublQrlo*zjOf+kbok"},
    {"patternwhitespace patws ", "sn$jBljIimk+k"},
    {"pauc paucinhau ", "OX@Bk"},
    {"pcm prependedconcatenationmark ", "6>oanj5kjPrkakj2G=jzj"},
    {"phag phagspa ", "7C&Ak"},
    {"phlp psalterpahlavi ", "Za=!rmwp"},
    {"phnx phoenician ", "PM=-nj"},
    {"posixpunct ",
     "=xup-o-m@rlklmmjllmjnj*j<j9tmwwppljlzSljsjpkljLlj5mjano|kml2kjljmjmj0kk#svjllUkmDljtjuj%klw8omok4kx<j|jenkuj"
     "elkqkljVljWlkbljflqZljrjojNnj|jXljUkjzjukVm(mo&jljljlmRkjCkqlolvMloYkk2ljSwr`sDljawk0kkYklRkkNmllm]tepjnkIm="
     ";kdlploQmkuztuZlmFknIkkKkqvjQzjllvlxlxlxk#)s1k.nvn#<JkklmlkujllpoljljljojvkonpmljEkkoZx)tbkWk)iw;1(m;lEl5ooy"
     "mlkNlj9m1kl0k@+lhkwXn-ylmn*zjpkpl2lknj1ljEmkos=]tj!:v/sjz;u^z4qNBmIkLgt9kBkk0plAljujQlos(tkElkNmmumEkmgkk{ll"
     "j5kk3kj8lv!kZlm*lBlk!kGljykclja0tj2mzKr!clj0km!s)>l#lmFmxup-o-tXlplpxkYol8krDkzmllvnj3k~Esj4kjAsjOzj<kWmj<j3"
     "pr_jSkj`pMkp0lmGtj<kGpjXmn0kmAnpKlklmblm4kkZkmojxjllikoIljTpklkPlnukljFljQo(Gll/vWkjflmRojeolLmj3lqdklln4lsa"
     "nj6ln}kGxkUkvil.xjC+nGKkkWHqkiljLkrokCvlQpmDqjMVsjmjMgkEo!UsMmPlGkKou^mEkpl)kr/oFk(Kknj7nfkK$j,j<j,j<j,j<j,j"
     "<j,jGkGuBkm6kqlwlpM^jRsj3!j8$kZ#jnjalj0tk1p}o9lwxmxlxl[*PmCk.x}orrkyoKmc&oznvnSlo4lquojzuoAkssq_s/muokIkOqww"
     "mvnspAkrxmtqrrBml1l"},
    {"print ",
     "<4l>7zmoopljl$larl]m4kmll9ks,ooviolEkmAlyDkm3kmxl-mjltp:lkpBolqmkm&lpljnmmrmkmmsjoklnm*mllookm&lplklklkmjlno"
     "kmlnjrmljrzullrlll&lplklnmsllllmjzmmurplllqmkm&lplklnmrmkmlrloklnm!uklonllmnkljlknknlnuonnllmmjqjy%pvlll(lym"
     "rlllmrkllmjmmmsr&lll(lslnmrlllmrkqklmmsllwvlll5klllooym+lll!n)lrljmpnjooljlqqsmlwCko.^kljlnl)ljl(mnljlplsmm="
     "Qkl@o^l@lxlv^HnljpjmGrlmmpljlmm`lmm<lmmpljlmmxlBklmmLkm;n+qekmomcxnhkr&t)t$wvlllkw3lmsqsq+qhkr|pOku:luouojn{"
     "mnv}o+qtnGkmJkl.mtqsqwm:5kVklUmsEknxnGkp|mts|pcumom]momqljljljl:m7klxlwmol#mllrl_mDklum,lvn<z<z4moZx)t(B`m;l"
     "Xqp~ljpjmAkrky)tplplplplplplplplZl@+lhkwXn-YklekmClp|l3llekt2klgKxn9ktWq&3nsPnmkljlq(DknsqAksOksuqPlv/nWklto"
     "<l9ktwmsmCl+-uomomotplplEkoZlmsqBNow(o3kS0kFFmmFl_pwnp+lnljlklklYl!dsm8krj={q5kl#lmonlilmjl9nnomomomlnplpunm"
     "ul+l#lklxmw@Wlplo~ngklvnj3k0kfl.n3kz-o@t/p|p/l[ow}Mmmsq@o@o_s6kvulxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm("
     "lQksr4k#lkp<n,pjKkAko$m4klkpqlll.mlosrrrIk=^out8kn.m,p+rmwpakRkBk5kx5kr0kssq]n.skTn:l{llmk!lBk}s{)+_-&(tWko@"
     "tMkujm*rsq7kl!s^t5ll$v!l1kIkpljlmlxltqDkpsqmlqmkm&lplklnlsmkmlmjqjppmpnnvsljmjl]lsljmjlmlslksk:1lln;QkssWm8k"
     "m]@Nkvsqv%Ckqsq$/,mxo(6nEkBlbkwqmjmqlkl/lkmutsQkqm0kmt.QksbkxRkrs3n=ysqrl~lwu.n;m&lwTkplkl}njlklrssqolkl[lkl"
     "orsfp*rzl`n.fkjz4kxM%DlKllnvFnRDk8lxT*uYhkpgv2HmCkP^Svr:lsoZklsq/mouOkuslpl%p#SsCkJn0lClTkoBkrzKknvkyF1msM-|"
     "sQInmlplklKpzj:lmjymsZrE6kGlpvnrrsmqIgkOoqUsWk0km(tPlGkKou^mDn(OkXl$w$wfkt*1mdklPklkmjmkmmluljlplJklmmqlpl-l"
     "mlnljnplOqmLpmQyznlxP*:qoYnplzmplklnpGk>jNl~nwmsok6q:#CkpjFt{Zn|ojVtplmlklxlGnmy|UkosokL!MkWkFkFnml,lkljmjls"
     "lmljljqjojljljlllkljmjljljljljlkljmmlplmlmljlslzpllnlz8kk1p}o9lwxmxlxl[ucmCk.x}orrkyoKmc&oznvnSlo4lquojzuoAk"
     "ssq_s/muokIkOqwwmvnspAkrxmtqrrBmlBlf(E4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63lgLaqj;5ldlEoG5<DG<mDG<"},
    {"qmark quotationmark ", ">jojgljzjJhmq,kbYkj8tmxlU2,mAnjoj1lk"},
    {"radical ", "Odo+lhkwXn"},
    {"regionalindicator ri ", "MgHk+"},
    {"rejang rjng ", "MH&@vj"},
    {"runic runr ", "WclTknt"},
    {"s symbol ",
     "[jqj!l<jlj.jlj[nlkmjlmmjnj;j<j9tmwwppljlzSljykNlj5mjgolTllmjmkRnjuj%kNojrk2mj2rkqkLojbljflqhljSnj|jInjEnlzjl"
     "lmo&jljljilqlolkpmInkXzs4zj6rjgqjNm=dqstr9*jllvlxlxlxkPkjxj`lxl%<JkklmlkujllpoljljljojvkonpmljEkkoFro.mTo)tb"
     "kWk)Uw0k3km:ugr)Hko;mDrm;lEl5oohqk2k+lhkwXn-yojxkwj(kqk2lkJokos=]tj!:v/sjz;u^z4qNBmIkLgt9kUv(tkElkNmmumYvl1o"
     "jykT3tj2mzMryclj0km9ljllmjKmjqj!l<jlj.jljelplpxkiprDkzmllvnj3k~d[k7wjZyk5Akjc3k.FNsmpjXCtjPgkEo!UsMmPlGkKou^"
     "mEkpl)kr/oFk(Kknj7nfkK$j,j<j,j<j,j<j,j<j,jGkGuBkm6kqlwlkR^jRsj2Akjnjalj0tk1p}o9lwxmxlxl[*PmCk.x}orrkyoKmc&oz"
     "nvnSlo4lquojzuoAkssq_s/muokIkOqwwmvnspAkrxmtqrrBml1l"},
    {"samaritan samr ", "N0k0kmx"},
    {"saur saurashtra ", "QD&Oksu"},
    {"sd softdotted ",
     "FlkHnjCpj;j8kj&j6qj9ljljK7mj7kjxjnjhljNmjHsjZnkWIkj4P8kk6kk6kk6kk6kk6kk6kk6kk6kk6kk6kk6kk6kkN3kjapk-j"},
    {"sentenceterminal sterm ",
     "=jwj!j4:jDml1nj~lMojHkjljnkOpkA_kQ!jok9!jJnkNmk1kjpj0qkeqmSmkukmk:l8nkLkkX%j*ktl8Rklbpjxj)kPsjOZxj1pk3ojnjNr"
     "kgkk6ljImkDmlAmkPojGHtjmkFkjnkZmjwj!jLkjFHkkI.n0kmAnkSlmcllelkqj!kikklkJljTpkSlkErkpxGlkPolNujljRokhkkGskIyk"
     "UkkRMskiljLkkvjEvkRpjecsj7Zmj"},
    {"separator z ", "<jcljKYlj29kt:kpj3kjfhkj"},
    {"sgnw signwriting ", "7UEkLxznlx"},
    {"sidd siddham ", "U3@8km]"},
    {"sinh sinhala ", "bVkll!n)lrljmpnjooljlqqsmlVc<$"},
    {"sogd sogdian ", "YC>{"},
    {"sora sorasompeng ", "0M>*rs"},
    {"soyo soyombo ", "2V@bk"},
    {"space whitespace wspace ", "sn$jBlj-jKYlj29kt:kpj3kjfhkj"},
    {"spaceseparator zs ", "<jcljKYlj29kt]j3kjfhkj"},
    {"sund sundanese ", "KLmIkWoq"},
    {"sunu sunuwar ", "Ad@=ys"},
    {"sylo sylotinagri ", "XA&~"},
    {"syrc syriac ", "b_wlEkml3pt"},
    {"tagalog tglg ", "cel&tj"},
    {"tagb tagbanwa ", "iglvlllk"},
    {"taile tale ", "09m/mn"},
    {"taiviet tavt ", "hO&Lk+n"},
    {"takr takri ", "G9@Ckqs"},
    {"tamil taml ", "LKkklonllmnkljlknknlnuonnllmmjqjy%cc>4kxj"},
    {"tang tangut ", "aM1kj<F1ms2!Iur"},
    {"tangsa tnsa ", "da0kXkls"},
    {"telu telugu ", "CNkvlll(lymrlllmrkllmjmmmsrr"},
    {"term terminalpunctuation ",
     "=jujljvknjL#jsjJujDkjSkjyjll1nj~tljBokAkolq<jbok9.kcmjoogpkP!q9!jZllRkkNmlnj`mmk0qkeqmSmkukll:l8nnIkkX%j*ktl"
     "8RklbpjxjojujlknkOskNZxk0pl3onNrkgkk6ljHmlDmlclj!kPojGHtjmkDkllmZmjujljvknjLkjmj3*j4kjY+jKnjfpkImoOko0lm8&n0"
     "kmAnpNlmcllelkqj!kiknJljTpkSllwkiqmnxGlkPolNujljRokhkkokAsl1kjGxkUkkJ/n4crkiljLklujEvkQpkecsj6Zmm"},
    {"tfng tifinagh ", "3WoAkrkyj"},
    {"thaa thaana ", "U|4k"},
    {"thai ", "UYkCkp-"},
    {"tibetan tibt ", "FekQkl@o^l@lxlpok"},
    {"tirh tirhuta ", "ig>Qkss"},
    {"todhri todr ", "34=6k"},
    {"toto ", "B0Gk:"},
    {"tulutigalari tutg ", "Db>sljmjl]lsljmjlmlslksk"},
    {"ugar ugaritic ", "Ca</lj"},
    {"uideo unifiedideograph ", "bPpLBmKkLGtFHukljlkujljlkmlQ4=E4&=D2lqfnm1cly2VmzawFAlXJlp63l"},
    {"unknown zzzz ",
     "X$kqmrjlj&jcrj_k6kknjBkq.mqt1pjGkkClwFkk5kkzj/kljvn<jmnDojskmk)jrjlloktkmkoqlmmjpk,knjqmmk)jrjmjmjmkljpmmknl"
     "lpojlp#snjtjnj)jrjmjpkujnjnklxokwprjnjskmk)jrjmjpktkmknpnmmjpk$smjqlnjolmjljmlmlnlwmplnjoklolw(nxjnj*j!ktjnj"
     "opmjnklkokup)jnj*jujpktjnjopmomjokujnuxjnj7kjnjqm!k-jnj$l+jtjlkrllmqjljsouknuEkm:[mjljpj+jlj*kpjljrjuko;Skj]"
     "m`j]jzjx[JnjlnlkIrjokrjljok|jok>jokrjljokzjDkjokNkk=l-ogkkqkexl0lp)r+r&uxjnjmu5lkuouo-o0lp~nQks<jwmwmll}kpt0"
     "km-ovlIkkLkj:kvouoyk<3kXkjWmqGklzlIkn~kvq~neukqk_kqksjljljlj<k9kjzjykqj%knjtjCljwk.jxl>x>x6mmbx&v%D`k=jZqn1k"
     "jlnlkCkpmw+rrjrjrjrjrjrjrjrjbl=-j0luZn+akjgkkEln~j5ljgkr4kjiKxlBkrYq$5nqRnkmjljs%FkluoCkqQkqwoRlt;lYkjvm>jBk"
     "rykukEl)/sqkqkqrrjrjGkmblkuoDNou*m5ka7n7rkHl]rupn-jpjljmjmjalyfskAkpl;}o7kj%jompj1mkljBnlqkqkqknlrjrspkwj-j%"
     "jmjzky=Ylnnm1klikjxll1k2kdl:l5kx/m]r;n~n;j^my{Omkuo]m]m{q8ktwjzjrjmjvjzjrjml8kugpr)ss)qj}jtNkqklj0kjmllk*jSk"
     "qt2k%jmn>l.nlIkCkm&k6kjmnsjnj:knmuptpKk;`mwrAkl:k.n-pourYkTk9k7kv7kp2kquo_l:qmRn<j}jnkmyn9k0kq}&-]/$*rYkm]rO"
     "kslk,puo9kj$q`r7lj&t$j3kGkrjljojzjvoFknuoojskmk)jrjmjpjukmknklolnrkrlptujlklj_jujlkljojujmqm.3ljp/SkquUmAkk_"
     "=Pktuox#Ekouo&-.kzm*4nGk9ldkusklksjmj;jmkwruOksk2kkv,SkqdkvTkpu1n@wuotj1kjys:l=k)jyRkrjmj0klljmjtquoqjmj^jmj"
     "qpudp,p#j|l:dklx6kvO%BlMljptHnPDkAlvV*sahkniv0HmEkN^Uvp<jumbkjuo;kqsQksujrj(n%QsEkHn2lAlVkmDkp#IkptmwH1mqO-`"
     "uOInojrjmjMpxl.nklwoqbrC6kIlnxltpuksGgkQooWsUk2kk*rRlEkMos`kFn%QkVl&u&uhkr,ilfkjRkjmklkmkojwjljrjLkjoksjrj/j"
     "ojpjllrjQqkNpkSyxpjzN*<oqWnrj#krjmjpnIk<lLl1klykumm4q<zEknlDt}Xn~mlTtrjojmjzjInk!`WkmummJ!OkUkHkDnoj.jmjlklj"
     "ujojljlolmljljljnjmjlkljljljljljmjlkojrjojojljuj#nnjpj#6kmio0kmBluzkzjzj^semAk:v0kmtpmwqIme&m#lxlUlm6lowmlxw"
     "mCkquo{q;kwmmGkQquykxlunCkpzkvotpDmjDld(G4&;F2lohnk3clw4VmxcwZ9k3vK=ZJln83leLaql/7lblGo1c6l"},
    {"upper uppercase ",
     "Kk+Cl(lp>jljljljljljljljljljljljljljljljljljljljljljljljljljljljmjljljljljljljljmjljljljljljljljljljljljljlj"
     "ljljljljljljljljljlkljljnkljlkllmmlkllnklkljljlkljmjlkllljlknjrjmjmjmjljljljljljljljmjljljljljljljljljmjmjll"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljrklkmjlmljljljljKpjljnjsjqjllljlklzlr[jmlnjljljljl"
     "jljljljljljljljpjmjlkm5k4kjljljljljljljljljljljljljljljljljtjljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljlkljljljljljljmjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljljm]AJk]ljpj3zeka3kjq|ml6qjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljtjljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljtqsouqsqsovjljljljsqSkmwmwmwnvmcojojnlmlmjnnqj"
     "ljljlmmmukpj-y%j9#+f`2k4kjllmjljljlmljmjslljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljsjljoj4Fyjljljljljljljljljljljljljljljljljljljljljljlj%jljljljljljljljljljlj"
     "ljljlj1mjljljljljljljnjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljujljlkljljljljojljmjljnjl"
     "jljljljljljljljljlnlnljljljljljljljlmljlknjpjljljlj+jf0u+7-_2m@MmtlxlplkG_5kNm&eIk;Jat;7cv+-+-+-jlkmjmkmmlq-"
     "+-klmmqlp.klmlnljnp.+-+-+-+-+-+;*>*>*>*>*>jf7l=c0k+q+q+"},
    {"vai vaii ", "Uc%Tp"},
    {"variationselector vs ", "Z1mllj53/yG4GsEo"},
    {"vith vithkuqi ", "D2=tlxlplkltlxlplk"},
    {"wancho wcho ", "E1GkCkpj"},
    {"wara warangciti ", "KL@bkwj"},
    {"word ",
     "3ksr+ojl+3kjujojp(l:l7touynrjlj#Qllkmmljqjllljl$lbkl3mlbml]mjq`s~ljlklkljs,om:tpSkoBllqmsl#mj!DkmAly8kojmjm0"
     "k$-otp)losTklclmsl#lqmkm&lpljnmmrmkmmsjoklnmuujljmllookm&lplklklkmjlnokmlnjrmljryvllrlll&lplklnmsllllmjzmmst"
     "plllqmkm&lplklnmrmkmlrloklnmslj!klonllmnkljlknknlnuonnllmmjqjys!vlll(lymrlllmrkllmjmmms!mlqlll(lslnmrlllmrkq"
     "klmmsllwvlll5klllnpmrnmsuolll!n)lrljmpnjooljlqqsmkxCkpxls`kljlnl)ljl(mnljlplsmm=j*kqsvjljljosl@o$l!l@tjDkSkq"
     "Wkm]ljpjm|lHqlmmpljlmm`lmm<lmmpljlmmxlBklmmLkml=y!ekmonYwmzl+pTkntr&t&v$wvlllkwcknjokms>lltqhkr|pOku:luouu_m"
     "nv}o+qs_-oHkl.mtqsxjs:5kVkns#rwPlwAkssn3kmtp|ml!ll^pcumom]momqljljljl:m7klpljnllpnmmoovpllpMkk%j/jxj!v7k<#jo"
     "jmsljnnqjljljlmltmmpnoj#`4#6kF`3oqrw]ljpjmAkrjz)tplplplplplplplpl;3kjKtl,xlnmnoekmkmlliklmp|l3l#;4kyIuLBmKkG"
     "gtNk0kmhon-&5klslOl^rmClmLkmkljlq(8koj%6kwOkusq)njl3km@w.nJkytq:l9ktwmsq(nRk+lmymnuomomotplpl|lwqWllkmsqBNow"
     "(o3kc7n5rmFl_pwnpulvlnljlklklHl>2r$Ikm8k{uoy!ynk+l=nlil%sr+ojl+vhknomomoml[ul+l#lklxmw@WlPk7k2mjfl.n3kzj<;x/"
     "p|p/m@oqln}Mmmsq@o@o_s6kwtlxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm(u(t:Lk#lku&u+QkAkqkKkmlkpqlll.mloj=.n.["
     "ql/,8ku&u#x!LlRkBk5kx5kx_ssq]nnl(Qo{lknk!lBk<ujs<<&}%.(tPk<ytEkrjx*rsq7klsoms@mjtNkomlvlj[!l[qmIkpljlmlxlsrD"
     "kpsqmlqmkm&lplklnlsmkmlmjqjppmpnnvsljmjl]lsljmjlmlqxk:Tkpsom;OkljssWm8kmr*o@Jknjvs_Bkrsq$/,mxosqp6nDkClSk(qm"
     "jmqlkl/lkmrwsQkqm0kmqlk.HksjsSknj$RkKn<zsqrl~lrzs+/m&lwTkplkl}njlklrssqolkl[lklorsfp(tzl`nnxtfkjZkL%DlKl#FnR"
     "Dk6lza)!&uYhkpgv2HmCkP^Svr:lsqXklsq/mnv9ktmwst%p#Ss~nsJnIkdlTkoBkrzKkklkvkyF1msM-|sQInmlplklKpzj:lmjymsZrE6k"
     "Glpvnrrsnkc2lsOu0km(3vnnosqmp;mEmldsdklPklkmjmkmmluljlplJklmmqlpl-lmlnljnplOqm*l*l:l*l:l*l:l*l:l*lqm4kIu9ko4"
     "ksjyj)nlxP*:qoYnplzmplklnpGk>jNl~nwmsoj7q:#CkLt{Zn|atplmlklxlGnvp|UkosL,ml,lkljmjlslmljljqjojljljlllkljmjljl"
     "jljljlkljmmlplmlmljlslzpllnlziw+q+q+8Eksf(E4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63lRRaqEo"},
    {"xidc xidcontinue ",
     "3ksr+ojl+3kjujljmjp(l:l7touynrjlj#Qllknlljqnljl$lbkl3mlnmUml]mjq`s~ljlklkljs,om:tpSkoBllqmsl#mj!DkmAly8kojmj"
     "m0k$-otp)losTklclmsl#lqmkm&lpljnmmrmkmmsjoklnmuujljmllookm&lplklklkmjlnokmlnjrmljryvllrlll&lplklnmsllllmjzmm"
     "stplllqmkm&lplklnmrmkmlrloklnmslj!klonllmnkljlknknlnuonnllmmjqjys!vlll(lymrlllmrkllmjmmms!mlqlll(lslnmrlllmr"
     "kqklmmsllwvlll5klllnpmrnmsuolll!n)lrljmpnjooljlqqsmkxCkpxls`kljlnl)ljl(mnljlplsmm=j*kqsvjljljosl@o$l!l@tjDkS"
     "kqWkm]ljpjm|lHqlmmpljlmm`lmm<lmmpljlmmxlBklmmLkmltryy!ekmonYwmzl+pTkntr&t&v$wvlllkwcknjokms>lltqhkr|pOku:luo"
     "uu_mnv}o+qt^-oHkl.mtqsxjswly5kVkns#rwPlwAkssn3kmtp|ml!ll^pcumom]momqljljljl:m7klpljnllpnmmoovpllpzk5kk%j/jxj"
     "!v7kvojnu#jojmsljmoqjljljlymmpnoj#`PEk3oqrw]ljpjmAkrjz)tplplplplplplplpl;Nul,xlnmnoekmkmll4lp|l3l#;4kyIuLBmK"
     "kGgtNk0kmhon-&2koslOl^rmClmLkmkljlq(8koj%6kwOkusq)njl3km@w.nJkytq:l9ktwmsq(nRk+lmymnuomomotplpl|lwqWllkmsqBN"
     "ow(o3kc7n5rmFl_pwnpulvlnljlklklHl>3mqbn$Ikm8k{sqy!ynk+l>jljnjljljljlZl%sr+ojl+uiknomomoml[ul+l#lklxmw@WlPk7k"
     "2mjfl.n3kzj<;x/p|p/m@oqln}Mmmsq@o@o_s6kwtlxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm(u(t:Lk#lku&u+QkAkqkKkmlk"
     "pqlll.mloj=.n.[ql/,8ku&u#x!LlRkBk5kx5kx_ssq]nnl(Qo{lknk!lBk<ujs<<&}%.(tPk<ytEkrjx*rsq7klsoms@mjtNkomlvlj[!l["
     "qmIkpljlmlxlsrDkpsqmlqmkm&lplklnlsmkmlmjqjppmpnnvsljmjl]lsljmjlmlqxk:Tkpsom;OkljssWm8kmr*o@Jknjvs_Bkrsq$/,mx"
     "osqp6nDkClSk(qmjmqlkl/lkmrwsQkqm0kmqlk.HksjsSknj$RkKn<zsqrl~lrzs+/m&lwTkplkl}njlklrssqolkl[lklorsfp(tzl`nnxt"
     "fkjZkL%DlKl#FnRDk6lza)!&uYhkpgv2HmCkP^Svr:lsqXklsq/mnv9ktmwst%p#Ss~nsJnIkdlTkoBkrzKkklkvkyF1msM-|sQInmlplklK"
     "pzj:lmjymsZrE6kGlpvnrrsnkc2lsOu0km(3vnnosqmp;mEmldsdklPklkmjmkmmluljlplJklmmqlpl-lmlnljnplOqm*l*l:l*l:l*l:l*"
     "l:l*lqm4kIu9ko4ksjyj)nlxP*:qoYnplzmplklnpGk>jNl~nwmsoj7q:#CkLt{Zn|atplmlklxlGnvp|UkosL,ml,lkljmjlslmljljqjoj"
     "ljljlllkljmjljljljljlkljmmlplmlmljlslzpllnlz6Uksf(E4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63lRRaqEo"},
    {"xids xidstart ",
     "Kk+q+3kjujojp(l:l7touynrjljelnlknlljqjllljl$lbkl3msUml]mjq`Rk,om1k|[kl8lljzkrkulmj!jl/:hkvj+<tkojp&ojtjnj**r"
     "tp)lo#{Ek8knj$jrszyoqmkm&lpljnmnj!jxkllykujsookm&lplklklk<mlj%l!rlll&lplklnnj$jzk*jvqmkm&lplklnnj;kllzj#jlon"
     "llmnkljlknknlnu)j8kqlll(lynj-lmjmk;joqlll(lslnnj<klkzk#rlll`mj!jplsl+op!n)lrljmpEk2kljxpEkkljlnl)ljlsljujmnl"
     "j(m=jJkql@.nQl|&j!oomnjnkrlovwj#]ljpjm|lHqlmmpljlmm`lmm<lmmpljlmmxlBklmmLk^y!ekmonYwmzl+pTkntr!x#y!yvllz6k[j"
     "ojNkhkr`ljpOku:5k/mnv}o+Ak(t7kckj4l1k#qAk/xku}-@|lu@mtp|ml|mlolknjpBnKk7pmom]momqljljljl:m7klpljnllpnmmoovpl"
     "lpRljxj!vCljojmsljmoqjljljlymmpnoj#`PEk3oqmnkw]ljpjmAkrj!(tplplplplplplplpBvl,rrnmnoekqlliklmp|l3l#;4kyIuLBm"
     "KkGgtNk0kmhonyuk&1k!:mYk`rmClmLkmkljlq(ylllml(:6ky4kIkonjlkv-u(,.r1k/j!nlsunl`*llq&(njn4kljnkmnmjlj+lmtrlwom"
     "omotplpl|lwqOl:BNow(o3kc7n5rmFl_pwnpjlslvlnljlklklHl>3mqbn$Ikm8k{sUljljnjljljljlZl]+q+vAkm:nomomoml[ul+l#lkl"
     "xmw@WlPk7kho.n3k3k;x/p]u/m@oqln}Mm$@o@o_s6kwtlxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm(u(t:Lk#lku&u+QkAkqkK"
     "kjzmlll.}.n.[ql-.8ku&u#x!LlRkBk5kx5kx@_-t(Qo{qk!lFk.ujs&}!2k%.(w7kDkkmjx~=*-@:jmjs>njw2kym(jlj[!l*%kJkpljlml"
     "xlsr1k_qmkm&lplklnnj$jwn;sljmjl]lj,jlj0k7k$m&l;2k&klj5n1k|m]2k&jFk|xjRk,^p6n}RlIk<qmjmqlkl)zjlj5lqm^!jlj/ju_"
     "rj(jv0k%j$RkKn<<rl[#j5k/Nlplkl](j,olkl;yjDq#zjlvl=ZljZkL%DlKl#FnRDk6lza)#o,Yhkpgv2Hm/8_Svr:#Xk#/$2k!m<%p#Ss~"
     "WnIkdlTkpjMkvKkklj/F1msM-|sQInmlplklKpzj:lmjymsZrE6kGlpvnrrs6hldklPklkmjmkmmluljlplJklmmqlpl-lmlnljnplOqm*l*"
     "l:l*l:l*l:l*l:l*lq0{:qoboGkCm~up!j7q/$}Zt-4o/mj1uplmlklxlGnFkMkrjZ,ml,lkljmjlslmljljqjojljljlllkljmjljljljlj"
     "lkljmmlplmlmljlslzpllnlzB8lE4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63l"},
    {"yezi yezidi ", "c8>{llmk"},
    {"yi yiii ", "AA%d+n9k"},
    {"zanabazarsquare zanb ", "CT@Qk"},
};
const size_t kNumUnicodeSets4 = 87;

}  // namespace kintsugi::text
// clang-format on
