// Written by bench/tokenizers/unicode_tables.py: sets of characters of Unicode 16.0 by name.
#include "kintsugi/text/unicode_tables.h"

// clang-format off
namespace kintsugi::text {

const UnicodeSet kUnicodeSets1[] = {
    {"+control ", "kqmkl!6l<xjD:o)jDnj5kjV6ljK0kn-n5knlsa9*97m6>jPolljD5ljcW&mISlqhAYrj;5lOD<DG<mDG<"},
    {"+mark ",
     "3!Ll6ppdo~ljlklkljSkt4k%!jClpmomklm[j;,2ltEkr@mlrllln~lVlwl<Akll!lpuk:lCkjlpmkmltjuk:lCkjlnokmlnj;knjvlCkjlq"
     "llll&k:lCkjlpmkmlskuk;jFknnllmtj{mEkplllmrkvk:lCkjlplllmrkvk:lEkplllmtjuk;kQkjooljlq$kHkjmpwq9ljmolkvoUkk.jl"
     "jljok5k$lkptl@tjBl$*molllmpnmxuljumTyl2&l:l:k;kKk;tj1klUlk@jTluouennDksl.mj4kxLkn3kz_rwl;vCkw4k$Imll%ojolnkJ"
     "n8kpn1z<BNkl7mj7l;FvoGlkFexmls=kakk3pjnjoj*nikk6k!-!8kq,v0km3kw]jNkwwjsk1kl6kjllmkpklj|npkCoqlkN0tjIzy!yT&j2"
     "ojFmn6]llkpm{lojVmk1/l9kxCkm1ktPkl]wIkjwl4kwtl6luqjQmu(mCkjlpmkmltjukmpnnDn!Gl$Bopmr.kckzHlvClxO.qlqck&lw1es"
     "nFkpG)0k!mDXsk9Slnnosqmp;mEml0~9ko4ksjyj)nlxB:plzmplkln94kpKlp7GVrEo"},
    {"+moved ",
     "VxjWyj6kkFkkZyjrjPykdojclj)jPtjDNk=4lk3kjfokd(jxl>mC$lB|jdym4smZtktjMexnmjljpmojyja$k17tyfskAkp90k6k6tnPr+9("
     "]n.skbpol]lyM#l4qsljmjl]lsljmjlmlslkskUz$Ekj4(tfkqik=ysYs}osqk1pzl`n.f.jptTnepWWkjt.uYhk5UmCkJNkCkPp*m*HpnQ1"
     "mqO-n]jt)6lOlxD%y5k7hmotj@j$jDGmRonUsq(lls<EvkFn%ak4kIk$Y&jY*.b(8lypAk5k4kGk>j9*{Zn|ojDn:l&skZFkjH/kmjHmu0ll"
     "(ximsokyrKrm:lzr:lvnqjljnmumljsmnjrmTn[ujAU)phnj4cluLVmaw9UnT8nZT$WQo"},
    {"+nonspacing ",
     "3!Ll6pnfo~ljlklkljSkt4k%!jClpmomklm[j;,2ltEkr@mlrllln~l1m;Bkjljoqojnpuk:jEkjomsj&k:kDkjokokmlnj;knjvkDkjonlk"
     "oj&k:jEkjmjlmsjsjvk;jHkjwj6kjHklpllmrkvk:jEkjmjqjpk&k:jJkmsj&kDljrllj1ljmpwq9ljmolkvoUkk.jljljBkwlnlkptl@tjD"
     "lmlolkmk,kol!mxjmkqjzjTyl2&l:l:k;kKkklpsjmttj1klLmjTlloktjqlenkmjEkjlpljljmqqsmj4kwMkm4kjlnljpj{rwk=mmkllCkj"
     "lknjllEkqmkImllvlpojqjnkJn8kqm1zvojnuBNkl7mj7l;FvmIlkFexjos=kakk3pjnjoj,kNmj.!8kq,t2kl4kjmmmj{jNkomkmkwjsj3k"
     "j7kjllmkpklj}ksjEojmjojN0tjIzy!yT&j2ojFmn6]llkpm{lojVmk2/jAkxCkl5kmmkPkl]nlqIkjwk8krvl9llmjlkXmjnq(kEkjnj^pn"
     "n4qoljoklkEomqklk.kfkqmjlkHljljmoljCllmmlnPQtnFkpX*mDXskBSll#qmp;mEml0~9ko4ksjyj)nlxHZkpXIVrEo"},
    {"+notword ",
     "k1kup-mlj-1klslmln*j<j9tmwwppljlzSljmkojloljnjlj&jdkj5mjdmj_klo|q1kjljmjmjlq.mo.vnUkmDljskuj%klyFkkClwAkmlkl"
     "k2k!/mvn+jqqVkjelkuj%jskmk)jrjlloktkmkoqlmmjpkwsljlknjqmmk)jrjmjmjmkljpmmknllpojlp!tnjtjnj)jrjmjpkujnjnklxok"
     "urrjnjskmk)jrjmjpktkmknpnmmjpkujlymjqlnjolmjljmlmlnlwmplnjoklolwuyxjnj*j!ktjnjopmjnklkokuyojsjnj*jujpktjnjop"
     "momjokujnuxjnj7kjnjpnoppkusqjnj$l+jtjlkrllmqjljsoukmvEknzju^mjljpj+jlj*kpjljrjuko;l(moutljljlmuj]m&j$j]rlBkU"
     "koYkk_jlnlk~jJqjokrjljok|jok>jokrjljokzjDkjokNkkn;!ygkkqlawk#j-nVklvp)r)t&uxjnjmuekllmmku<njvo0lp~nQks<jwmws"
     "{kpt0km-ou]/mJkj:kvouvlq<3kXkluztuRluCkqul5kkvn~knynj`neukqk_kqksjljljlj<k9kjrjllnjrlokqmxnnjrxm3km#l-lvlyx5"
     "k>zlmlkujllpoljljljojvkonpmlz|2#8kD`5ootu_jlnlkCkplx+rrjrjrjrjrjrjrjrj=1klItn*zjpkpmgkkmknj1ljon~j5lz=2k!GuN"
     "BmIkIgtLk2kk0pl/$7kjujQl[tkElkNkkmjljs%Akml#8kuQksuo+llj5kk]u:lLkwvo<jBkrykuo*lTk)nk!kpsqkqkqrrjrj~jyoYljmku"
     "oDNou*m5kmO0k97m7rkHl]rupnwjxjpjljmjmjJl<4r!KkkAk_wm!y!lm)n;pj1m#up-mlj-t0llqkqkqkn>wj-j%jmjzky=YlNk9k0mldl:"
     "l5kxl:=v;n~n;k]msjp{Omkuo]m]m{q8kuvjzjrjmjvjzjrjml8kugpr)ss)qj}jtNkqklj0kjmllk*s*r<Jk%jms)s-OkCkomIkojmnsjnj"
     ":knml;:l:>sj;*Aks)s%v$JlTk9k7kv7kv{quo_lpj*Oo}jmlmyn9k>slq>:){(,*rRk:!rGkplv,puo9kjumoq]klrPkmojxjl>$j^ooGkr"
     "jljojzjupFknuoojskmk)jrjmjpjukmknklolnrkrlptujlklj_jujlkljojsvm.Vknumo/QkjlquUmAkkt(q=Lklltu]Dkpuo&-.kzmuor4"
     "nFkAlUk%sklksjmj;jmktuuOksk2kksjm,JkqlqUkll!TkIn>xuotj1kjtxu);k)jyRkrjmj0klljmjtquoqjmj^jmjqpudp*r#j|lpvvdkl"
     "XkN%BlMlzHnPDk8lxc)y)sahkniv0HmEkN^Uvp<juoZkjuo;kptBkrouur(n%Qs1kluHnKkblVkmDkp#IkmjmtmwH1mqO-`uOInojrjmjMpx"
     "l.nklwoqbrC6kIlnxltpulma2luMu2kk*1vplqqskr/oCmnbsfkjRkjmklkmkojwjljrjLkjoksjrj/jojpjllrjQqk,j,j<j,j<j,j<j,j<"
     "j,jsk6kGuBkm6kqlwl&pjzN*<oqWnrj#krjmjpnIk<lLl1klykuml5q<zEkJt}Xn~YtrjojmjzjIntr`WkmuJ,oj.jmjlkljujojljlolmlj"
     "ljljnjmjlkljljljljljmjlkojrjojojljuj#nnjpj#gw-o-o-6Ekud(G4&;F2lohnk3clw4VmxcwZ9k3vK=ZJln83lPRaqGo1c6l"},
    {"+number ",
     "3ksVlkpjml2<s0msJns8ssTlsooJlsTlsTlsmoLlvQlsspElsFlpr#Kls7lsTlsQk$iosQks0z$R$lFosqs)sVpsdltVmsqs3nsgks0msqsC"
     ")jnoqsJn5kmn7zEkYk&1x/a:jD!j,rylTqm4ms;qlx=s`xHQxs9ns6qoKms_sJns)sgks2ssVMtsit~wBk#kRq,]m:jsj0mnNnsh%q,p`rVk"
     "n)oQmkmym0kKkr8kk;lVknFlq+q|pGqo4ksqs9p:Oms}mNlp0m/dlsGksAmsr$RosSqsTlsFrsDlsq$WkuGs#4lsXxsgk.3osQksAksiqsDl"
     "%X)KlTUqs37ksgks0mslpWusco(ZqlgXusd<$w$Jl*U*4kT7ksIss8usNosgyrdlsR!DklllmWk~lxI&vhGks"},
    {"+punctuation ",
     "=xup-o-m@jpjnjuknjnjSyjsjHto|k7kjljmjmj0kk&klkxjmkUkmDlj~w9olAkx<jbokujOrj7!j1ljukYmxlj^mRkjUknokMlobmjSwrHm"
     "jawk0kkYklRkkNmlll^tipkbnkdlplocmpLmmFknIkkKkqvjJ#)s$lvlu;kyk4xm:k6*wZkk<sir&Jkm=kizmlkNlj9m1kl#gslosmu!jwj9"
     "lj1ljiTxk0plAljujQloLrmgkk{llj5kk3kj8lv!kZlmblk!kPojTCtkTns)>lwljojlkFmllolmuknk-llj.jljlp6sldxj4kjAsjOzjKnj"
     "<j3pr_jNlpMkp0lmP,pKlklmblm4kkZknnjxjllikoIlj1vjQo(GllOol3Ukn4crkiljLknsjbCtj6Zmn"},
    {"+unnormalized ",
     "I:j6kkFkkOvjJmr}sTpjYvjUokMrjO2kjc%4k9!n0ylOEljDZxmBkjJ#j6Juj-j8snl{lwV:mLkn3qk;n=ullQkt5kmAojeyjRkjljsjmj7k"
     "jlkpl7mjg&kTojokojMmjdkj$jbkj6yjlkbkjLskXErqqjOOklGxkeArmNMm@Z)kQplskmj=kQ)jb5kjBk5k4kGk>jQmpGrjHkmEumUokJoj"
     "mjrkpjOEkjbEks"},
    {"adlam adlm ", "daGkUkosok"},
    {"aghb caucasianalbanian ", "d0=6kvj"},
    {"ahex asciihexdigit xdigit ", "3ksro-o"},
    {"ahom ", "9C@,mxo("},
    {"alnum ",
     "3ksr+q+3kjujojp(l:l7touynrjljgkj:!lkmmljqjllljl$lbkl3msUml]mjq``wljlklkljs,om:tpAklzoBllqoqoymj!2kxAly|tkojp"
     ")m#%*rtp)losjs{uunpqUklylloxmsl#lqmkm&lpljnmnqmkmkljsjoklnmuujollookm&lplklklkonokmkojrmljryvllrlll&lplklnnr"
     "lllknjzmmstmollqmkm&lplklnnqmkmktkoklnmslj!klonllmnkljlknknlnuonnlllnjqjys!vlll(lynqllllskllmjmmms!mlqlll(ls"
     "lnnqllllskqklmmsllwvlll`mqllllljpmrnmsuolll!n)lrljmpsoljlqqsmkxCkppqjms`kljlnl)ljl#llmnljqjmsmm=j<s)ql@o#oyl"
     "@Nk9kljmxqWkm]ljpjm|lHqlmmpljlmm`lmm<lmmpljlmmxlBklmmLk^y!ekmonYwmzl+pTkntr$v%w$wvlllkw6km#yjojns_sqhkr|pOku"
     ":luorx_mnv}o+qs_-oHkm$vsqsxj*kvl5k6klxlqns_{mCklty9ktsn3kmtp|ml|mlolknjpBn%=v7pmom]momqljljljl:m7klpljnllpnm"
     "moovpllpRljxj!vCljojmsljnnqjljljlmltmmpnoj#`4#6kF`3oqmnkw]ljpjmAkrj!(tplplplplplplplpl;3kjKtl,rrnmnoekqllikl"
     "mp|l3l#;4kyIuLBmKkGgtNk0kmhon-&1kpqnMl`rmClmLkmkljlq($l<+6kwMkljus+onjl0kp>x.n5kluztq:l9ktwmsq(nNkljlj+lmymm"
     "vomomotplpl|lwqWlpsqBNow(o3kc7n5rmFl_pwnpulvlnljlklklHl>2r$Ikm8k{uRlnlil%sr+q+vhknomomoml[ul+l#lklxmw@WlPk7k"
     "ho.n3k3k;x/p|p/m@oqln}Mmmsq@o@o_s6kwtlxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm(u(t:Lk#lku&u+QkAkqkKkmlkpqll"
     "l.}.n.[ql-.8ku&u#x!LlRkBk5kx5kx_ssq]njp(Qo{lknk!lBkjn.ujs&}!2k%.(tOk=slnuBktjx*rsq5knsoms>njtIklmtvlj[!l=mjq"
     "mIkpljlmlxlsrBkrsqmlqmkm&lplklnnqmkmknjqjpp/sljmjl]lsljmjlmlknjlj0kKklllmpspl;KkmkljssWm8kmp,o@Hkljnjvs_8kmj"
     "rsq$/,mwpsqp6nBkElSk(qmjmqlkl/lkmkmmxsQkqm0kmoljlk.5kms#Qkpj$RkKn<zsqrl~lpljzs+/m&lwTkplkl}njlkllljmkssqolkl"
     "[lklmljrsfp(tzl`nlzsgkjZkL%DlKl#FnRDk6lza)#o,Yhkpgv2Hm1klsP^Svr:lsqXklsq/$2k!mwst%p#Ss~nsJnIkdlTkoBkrzKkkljw"
     "kyF1msM-|sQInmlplklKpzj:lmjymsZrE6kGlpvnrrsojc2lsi_dklPklkmjmkmmluljlplJklmmqlpl-lmlnljnplOqm*l*l:l*l:l*l:l*"
     "l:l*lqm4kc_:qoYnplzmplklnpGk>jNl~upmsoj7q/$}osLt-osZn/mtatplmlklxlGnFkMknjnjosL,ml,lkljmjlslmljljqjojljljlll"
     "kljmjljljljljlkljmmlplmlmljlslzpllnlziw+q+q+8Eksf(E4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63l"},
    {"alpha alphabetic ",
     "Kk+q+3kjujojp(l:l7touynrjljgkj:!lkmmljqjllljl$lbkl3msUml]mjq``wljlklkljs,om:tpAklpyBllqoqolulmj!2kxAl+<tkojp"
     ")m#%*rtp)losjs{uunpqUklylloxx#lqmkm&lpljnmnqmkmkljsjoklnwkujollookm&lplklklkonokmkojrmlj#ovllrlll&lplklnnrll"
     "lknjzm(mollqmkm&lplklnnqmkmktkoklnxj!klonllmnkljlknknlnuonnlllnjqj{vlll(lynqllllskllmjmm/mlqlll(lslnnqllllsk"
     "qklmxlwvlll`mqllllljpmrn)olll!n)lrljmpsoljlq$kxCkppqj7kkljlnl)ljl#llmnljqjym=jJkql@o#oyl@Nk9kljmn!Ikumm]ljpj"
     "m|lHqlmmpljlmm`lmm<lmmpljlmmxlBklmmLk^y!ekmonYwmzl+pTkntr$v%w$wvlllkw6km#yjojNkhkr|pOku:luor*/mnv}o+Ak-oHkm$"
     "6kj*kvl5k6klxlq7k{mmu}lty9k)lu@mtp|ml|mlolknjpBn%=v7pmom]momqljljljl:m7klpljnllpnmmoovpllpRljxj!vCljojmsljnn"
     "qjljljlmltmmpnoj#`4#6kF`3oqmnkw]ljpjmAkrj!(tplplplplplplplpl;3kjKtl,rrnmnoekqlliklmp|l3l#;4kyIuLBmKkGgtNk0km"
     "honyuk&1kpqnMl`rmClmLkmkljlq($l<+6kwMklj0konjllu<p>x.n5kluzj!yunl9ktw$(nNkljlj+lmymmvomomotplpl|lwqWl(BNow(o"
     "3kc7n5rmFl_pwnpulvlnljlklklHl>2r$Ikm8k{uRlnlil]+q+vhknomomoml[ul+l#lklxmw@WlPk7kho.n3k3k;x/p|p/m@oqln}Mm$@o@"
     "o_s6kwtlxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm(u(t:Lk#lku&u+QkAkqkKkmlkpqlll.}.n.[ql-.8ku&u#x!LlRkBk5kx5k"
     "x_@-njp(Qo{lknk!lBkjn.ujs&}!2k%.(tOk~nuBktjx**5k#ms>njtIklmtkujlj[!l=mjqmIkpljlmlxlsrBk*mlqmkm&lplklnnqmkmkn"
     "jqjpp/sljmjl]lsljmjlmlknjlj0kKklllm&l;Kkmklj5n8kmp,o@HkljnjFk8kmjRk,mw(p6nBkElIk<qmjmqlkl/lkmkmm4lqm0kmoljlk"
     ".5kms#Qkpj$RkKn<<rl~lplj5k/m&lwTkplkl}njlkllljmk+olkl[lklmljDq(tzl`nlMljZkL%DlKl#FnRDk6lza)#o,Yhkpgv2Hm1ka^S"
     "vr:#Xk#/$2k!m<%p#Ss~WnIkdlTkoBkrzKkkljwkyF1msM-|sQInmlplklKpzj:lmjymsZrE6kGlpvnrrsoj1hldklPklkmjmkmmluljlplJ"
     "klmmqlpl-lmlnljnplOqm*l*l:l*l:l*l:l*l:l*lq0{:qoYnplzmplklnpGk>jNl~up!j7q/$}Zt-4o/mj1uplmlklxlGnFkMknjnjZ,ml,"
     "lkljmjlslmljljqjojljljlllkljmjljljljljlkljmmlplmlmljlslzpllnlziw+q+q+DbkE4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63l"},
    {"anatolianhieroglyphs hluw ", "9h`gv"},
    {"any ", "j18Av"},
    {"arab arabic ",
     "6>nlolwlll;lsv+lHll=ak2kGo:lkpTkl.NS:Ol!2rmYkm8krj=yNlnlilPgk:NklBkmT8.ml,lkljmjlslmljljqjojljljlllkljmjljlj"
     "ljljlkljmmlplmlmljlslzpllnlz8kk"},
    {"armenian armn ", "O/]m4kmlW1;n"},
    {"armi imperialaramaic ", "DI=&lr"},
    {"ascii inbasiclatin ", "jbl"},
    {"assigned ",
     "jW$moopljl$larl]m4kmll9ks,ooviolEkmAlyDkm3kmxl-mjltp:lkpBolqmkm&lpljnmmrmkmmsjoklnm*mllookm&lplklklkmjlnokml"
     "njrmljrzullrlll&lplklnmsllllmjzmmurplllqmkm&lplklnmrmkmlrloklnm!uklonllmnkljlknknlnuonnllmmjqjy%pvlll(lymrll"
     "lmrkllmjmmmsr&lll(lslnmrlllmrkqklmmsllwvlll5klllooym+lll!n)lrljmpnjooljlqqsmlwCko.^kljlnl)ljl(mnljlplsmm=Qkl"
     "@o^l@lxlv^HnljpjmGrlmmpljlmm`lmm<lmmpljlmmxlBklmmLkm;n+qekmomcxnhkr&t)t$wvlllkw3lmsqsq+qhkr|pOku:luouojn{mnv"
     "}o+qtnGkmJkl.mtqsqwm:5kVklUmsEknxnGkp|mts|pcumom]momqljljljl:m7klxlwmol#mllrlAllum,lvn<z<z4moZx)t(B`m;lXqp~l"
     "jpjmAkrky)tplplplplplplplplZl@+lhkwXn-YklekmClp|l3llekt2klgKxn9ktWq&3nsPnmkljlq(DknsqAksOksuqPlv/nWklto<l9kt"
     "wmsmCl+-uomomotplplEkoZlmsqBNow(o3kocFnmFl_pwnp+lnljlklklYl!dsm8krj={q5kl#lmonlilmjl9nnomomomlnplpunmul+l#lk"
     "lxmw@Wlplo~ngklvnj3k0kfl.n3kz-o@t/p|p/l[ow}Mmmsq@o@o_s6kvulxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm(lQksr4k"
     "#lkp<n,pjKkAko$m4klkpqlll.mlosrrrIk=^out8kn.m,p+rmwpakRkBk5kx5kr0kssq]n.skTn:l{llmk!lBk}s{)+_-&(tWko@tMkujm*"
     "rsq7kl!s^t5ll$v!l1kIkpljlmlxltqDkpsqmlqmkm&lplklnlsmkmlmjqjppmpnnvsljmjl]lsljmjlmlslksk:1lln;QkssWm8km]@Nkvs"
     "qv%Ckqsq$/,mxo(6nEkBlbkwqmjmqlkl/lkmutsQkqm0kmt.QksbkxRkrs3n=ysqrl~lwu.n;m&lwTkplkl}njlklrssqolkl[lklorsfp*r"
     "zl`n.fkjz4kxM%DlKllnvFnRDk8lxT*uYhkpgv2HmCkP^Svr:lsoZklsq/mouOkuslpl%p#SsCkJn0lClTkoBkrzKknvkyF1msM-|sQInmlp"
     "lklKpzj:lmjymsZrE6kGlpvnrrsmqIgkOoqUsWk0km(tPlGkKou^mDn(OkXl$w$wfkt*1mdklPklkmjmkmmluljlplJklmmqlpl-lmlnljnp"
     "lOqmLpmQyznlxP*:qoYnplzmplklnpGk>jNl~nwmsok6q:#CkpjFt{Zn|ojVtplmlklxlGnmy|UkosokL!MkWkFkFnml,lkljmjlslmljljq"
     "jojljljlllkljmjljljljljlkljmmlplmlmljlslzpllnlz8kk1p}o9lwxmxlxl[ucmCk.x}orrkyoKmc&oznvnSlo4lquojzuoAkssq_s/m"
     "uokIkOqwwmvnspAkrxmtqrrBmlBlf(E4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63lgLaqj;5ldlEoG5<DG<mDG<"},
    {"avestan avst ", "gX=8knp"},
    {"bali balinese ", "RImVkl4k"},
    {"bamu bamum ", "f2&gk7I*Sv"},
    {"bass bassavah ", "0d0k/mo"},
    {"batak batk ", "dMm6ksm"},
    {"beng bengali ", "29kmlqmkm&lpljnmmrmkmmsjoklnm*"},
    {"bhaiksuki bhks ", "Te@rl~lwu."},
    {"bidic bidicontrol ", "Y>jRCmk-nBkm"},
    {"blank ", "sj)jcljKYlj29kt]j3kjfhkj"},
    {"bopo bopomofo ", "QzkCbo|Nl;"},
    {"brah brahmi ", "HH>Wko@tj"},
    {"brai braille inbraillepatterns ", "P2oUo"},
    {"bugi buginese ", "fCm-mk"},
    {"buhd buhid ", "Cgl$"},
    {"c other ",
     "j;6l<xjeykqmrjlj&jcrj_k6kknjBkq.mqz)jDnj4kkFkkClwFkk5kkzj/kljvn<qVkjRmjskmk)jrjlloktkmkoqlmmjpk,knjqmmk)jrjm"
     "jmjmkljpmmknllpojlp#snjtjnj)jrjmjpkujnjnklxokwprjnjskmk)jrjmjpktkmknpnmmjpk$smjqlnjolmjljmlmlnlwmplnjoklolw("
     "nxjnj*j!ktjnjopmjnklkokup)jnj*jujpktjnjopmomjokujnuxjnj7kjnjqm!k-jnj$l+jtjlkrllmqjljsouknuEkm:[mjljpj+jlj*kp"
     "jljrjuko;Skj]m`j]jzjx[JnjlnlkIrjokrjljok|jok>jokrjljokzjDkjokNkk=l-ogkkqkexl0lp)r+r&uxjnjmu5lkuouoyjvo0lp~nQ"
     "ks<jwmwmll}kpt0km-ovlIkkLkj:kvouoyk<3kXkjWmqGklzlIkn~kvq~neukqk_kqksjljljlj<k9kjzjykqj%knjtjvn-n5kymk.jxl>x>"
     "x6mmbx&v%D`k=jZqn1kjlnlkCkpmw+rrjrjrjrjrjrjrjrjbl=-j0luZn+akjgkkEln~j5ljgkr4kjiKxlBkrYq$5nqRnkmjljs%FkluoCkq"
     "QkqwoRlt;lYkjvm>jBkrykukEl)/sqkqkqrrjrjGkmblkuoDNou*m5ka7n7rkHl]rupn-jpjljmjmjalyfskAkpl;}o7kj%jompj1mmBnlqk"
     "qkqknlrjrvmkwj-j%jmjzky=Ylnnm1klikjxll1k2kdl:l5kx/m]r;n~n;j^my{Omkuo]m]m{q8ktwjzjrjmjvjzjrjml8kugpr)ss)qj}jt"
     "Nkqklj0kjmllk*jSkqt2k%jmn>l.nlIkCkm&k6kjmnsjnj:knmuptpKk;`mwrAkl:k.n-pourYkTk9k7kv7kp2kquo_l:qmRn<j}jnkmyn9k"
     "0kq}&-]/$*rYkm]rIkjpv,puo9kj$q`r7lj&t$j3kGkrjljojzjvoFknuoojskmk)jrjmjpjukmknklolnrkrlptujlklj_jujlkljojujmq"
     "m.3ljp/SkquUmAkk_=Pktuox#Ekouo&-.kzm*4nGk9ldkusklksjmj;jmkwruOksk2kkv,SkqdkvTkpu1n@wuotj1kjys:l=k)jyRkrjmj0k"
     "lljmjtquoqjmj^jmjqpudp,p#j|l:dklx6kvO%BlMljptHnPDkAlvc)y)sahkniv0HmEkN^Uvp<jumbkjuo;kqsQksujrj(n%QsEkHn2lAlV"
     "kmDkp#IkptmwH1mqO-`uOInojrjmjMpxl.nklwoqbrC6kIlnxltpukoKgkQooWsUk2kk*rRlEkMos`kUkqNl%QkVl&u&uhkr,ilfkjRkjmkl"
     "kmkojwjljrjLkjoksjrj/jojpjllrjQqkNpkSyxpjzN*<oqWnrj#krjmjpnIk<lLl1klykumm4q<zEknlDt}Xn~mlTtrjojmjzjInk!`Wkmu"
     "mmJ!OkUkHkDnoj.jmjlkljujojljlolmljljljnjmjlkljljljljljmjlkojrjojojljuj#nnjpj#6kmio0kmBluzkzjzj^semAk:v0kmtpm"
     "wqIme&m#lxlUlm6lowmlxwmCkquo{q;kwmmGkQquykxlunCkpzkvotpDmjDld(G4&;F2lohnk3clw4VmxcwZ9k3vK=ZJln83lPRaqGo1c6l"},
    {"cakm chakma ", "3N>7kl!"},
    {"canadianaboriginal cans ", "ZNl9xLvOk9Q<y"},
    {"cari carian ", "DV<3k"},
    {"cased ",
     "Kk+q+3kjujojp(l:lEnlmoRnl@rk;n7lj}mmkmmljqjllljl$lbkl3msUml]t`5Ik]ljpjm|lmhxekmoJ3ktp|mlKkBnKk7pmom]momqljlj"
     "ljl:m7klpljnllpnmmoovpllpRljxj!vCljojmsljnnqjljljlmloojmmpnoj#;nk8#6kF`3oqmnkw]ljpjZDy0k$/hlBlnmlGkmkljlq(nl"
     "lC#|lwqYkd0tpwni(+q+K,Yk7l@o@Rltlxlplkltlxlplk2tjmll{lr7-5kx5k4l&u&8IkIkWZtIkKbvdklPklkmjmkmmluljlplJklmmqlp"
     "l-lmlnljnplOqm*l*l:l*l:l*l:l*l:l*lq0{sl$qoboGkZ3kMk40k+q+q+"},
    {"casedletter lc ",
     "Kk+q+Ekju(l:lEnlmoRnl,Dnmmknlljqjllljl$lbkl3msUml]t`5Ik]ljpjm|mlhxekmoJ3ktp|mlKk}Jkvl=Cl7pmom]momqljljljl:m7"
     "klpljnllpnmmoovpllpbojojmsljnnqjljljlmloojmmpnoj8kkTEkXlmClqmnkw]ljpjZDy0k$-0mWkl(nmlGkmkljlq+knjC#|prrYkd0t"
     "pwni(+q+K,Yk7l@o@RltlxlplkltlxlplkM^5kx5k4l&u&8IkIkWZtIkKbvdklPklkmjmkmmluljlplJklmmqlpl-lmlnljnplOqm*l*l:l*"
     "l:l*l:l*l:l*lq0{sl$qohAkMk"},
    {"caseignorable ci ",
     "_jqjvj[jljRkjojljojmk9uBnokojtkljRopSnjpj5k~ljlklklj0kjvoutlj[ju%!jClqlslm>jlj;,2ltEktojmj+)~l0kjrkpr|CkBkjl"
     "joqojnpukxjzjEkjomsj&k-jmkDkjokokmlnj;knjvkDkjonlkoj&k)oljEkjmjlmsjrkvk;jHkjwj6kjnjBkjllpllmrkvk:jEkjmjqjpk&"
     "k/kDkkomsj&k:jSkjrllj1ljmpvr9ljmrtjlpTkk.jljljBkwlnlkptl@tjDlmlolkmk,kol!mxjmkqjzj5ljOwl2&l:k;k;kKkklpsjmtnj"
     "pj1kn7kjLkk@jTlloktjqlenkmjEkjlpljljmqqsmj`js:5km4kjlnljpj{rwk=mmkllCkjlknjllEkqmkKkockllvlpojqjnk6kHkxj@Alf"
     "sjllvlxlxlxkwnskujmjmn5knlsljxj!v7k<VKkkOllaljzj7l;3kjKtj]mnnpj4lo4lli1xja-o1pj9lmlslj/makky=Ykj*lEllnksjnjo"
     "j,kpjHmk-!xj_q,t2kl4kjmmmk#j(kMkomkmkwjsj[jvj7kjllmkpklj.jykpkljBlntlWljmjojN0tjDmzYvynjwy@jmjZmjrjqjvj[jlj3"
     "kj1kkNkj(lJuj2ojFmne(ol{lrhvllkpm{lojVmkYvm_j-nlj1qkZkmQkt5kmYljAkx|jmkul5kmmkmjojuj6kl]nlqIkjwk8krummj6llmj"
     "lkqjmjNmjnq(kDkknj^pnnQkoxjljljykfkqmllj*jekoljoklkEomqklk.kfkqmjlkHljljmoljCljljmmlnZorlkWokljojAmmmkoj=s{o"
     "mmsjtoml2kvlk2sploljck&mplklkXlonjlklpljSkknjljXqkvk8knpjlj*jOSlzqxZTounlMAknFkptmEul{kXtjJkzKkklkG4rmlplkaQ"
     "kklmLEl0km(5vltymp;mEml0~9ko4ksjyj)nlxB:plzmplklnpGk>jQmw9rjHkmDunUokHzpKlqaFknQdTrj;5ldlEo"},
    {"cc cntrl control ", "j;6l<"},
    {"cf format ", "cmjD:o)jDnj5kjPrkakjEfkjK0kn-n5knls66.jPolF5ljzjELnycA!mISlqhAYrj;5l"},
    {"cham ", "5M&9ktwmsmm"},
    {"changeswhencasefolded cwcf ",
     "Kk+1lju(lq=jljljljljljljljljljljljljljljljljljljljljljljljljljljljmjljljljljljljljlkljljljljljljljljljljljlj"
     "ljljljljljljljljljljlkljljljlkljlkllmmlkllnklkljljlkljmjlkllljlknjrklklkljljljljljljljljmjljljljljljljljljmk"
     "ljllljljljljljljljljljljljljljljljljljljljljljljljljljljljljljrklkmjlmljljljljMoj}jljnjsjqjllljlklzlr)jwlnkl"
     "jljljljljljljljljljljljlkmkljlkm5k4kjljljljljljljljljljljljljljljljljtjljljljljljljljljljljljljljljljljljljl"
     "jljljljljljljljlkljljljljljljmjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljljljljljljljm]4kj6Ik]ljpj1#oJ3ksq|ml6qjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljpkmjljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljtqsouqsqsovjljljljsq!2kmlmoplmov"
     "mwnplmoSpjnkqj1ky%j9#+f`2k4kjllmjljljlmljmjslljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljljljljsjljoj4Fyjljljljljljljljljljljljljljljljljljljljljljlj%jljljljljljljljljl"
     "jljljljlj1mjljljljljljljnjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljujljlkljljljljojljmjlj"
     "njljljljljljljljljljlnlnljljljljljljljlmljlknjpjljljlj+ja$Ykd0tpwni(+7-_2m@MmtlxlplkG_5kNm&eIk;Jat;SMy="},
    {"changeswhencasemapped cwcm ",
     "Kk+q+Ekju(l:lIklckl-mwmkljo2ll!q,lkljlknklmlnmjlkmjrjmjlknopjukWmj}mmknlljqjllljl$l1kn<lnlglsUml]u^6Ik]ljpjm"
     "|mlhxekmoJ3ktp|ml6njnj!jOlKmmjlRlmom]momqljljljl:m7klpljnllpnmmoovpllpSpjnkqj.j#;nk8#6kF`MllklkrBlrmnkw]ljpj"
     "ZDy0k$-0mwmGktxnlmnl*l/mkop+k6$j/Ykd0tpwni(+q+K,Yk7l@o@RltlxlplkltlxlplkM^5kx5k4l&u&8IkIkWZtIkfLyMk"},
    {"changeswhenlowercased cwl ",
     "Kk+Cl(lp>jljljljljljljljljljljljljljljljljljljljljljljljljljljljmjljljljljljljljmjljljljljljljljljljljljljlj"
     "ljljljljljljljljljlkljljnkljlkllmmlkllnklkljljlkljmjlkllljlknjrklklkljljljljljljljljmjljljljljljljljljmkljll"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljrklkmjlmljljljljKpjljnjsjqjllljlklzlr[jsjljljljljl"
     "jljljljljljljpjmjlkm5k4kjljljljljljljljljljljljljljljljljtjljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljlkljljljljljljmjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljm]AJk]ljpj3zeka3kjq|ml6qjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljtjljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljtqsouqsqsovjljljljsq+qsqsqsnvnvmwnvnSpjnkqj1ky%j"
     "9#+f`2k4kjllmjljljlmljmjslljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljsjljoj4Fyjljljljljljljljljljljljljljljljljljljljljljlj%jljljljljljljljljljljljljlj1mjljljljl"
     "jljljnjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljujljlkljljljljojljmjljnjljljljljljljljljl"
     "jlnlnljljljljljljljlmljlknjpjljljlj+jf0u+7-_2m@MmtlxlplkG_5kNm&eIk;Jat;SMy="},
};
const size_t kNumUnicodeSets1 = 48;

}  // namespace kintsugi::text
// clang-format on
