// Written by bench/tokenizers/unicode_tables.py: sets of characters of Unicode 16.0 by name.
#include "kintsugi/text/unicode_tables.h"

// clang-format off
namespace kintsugi::text {

const UnicodeSet kUnicodeSets3[] = {
    {"idcompatmathcontinue ", "hmkpjJ0njntlxCrjoj)ji8Akj,j<j,j<j,j<j,j<j,j"},
    {"idcompatmathstart ", "LDnjoj)ji8Akj,j<j,j<j,j<j,j<j,j"},
    {"ideo ideographic ", "93pk,rylL&LBmKkLGtFBu5rmFlcZxj.F1msM-|s5RnZr7XsE4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63l"},
    {"ids idstart ",
     "Kk+q+3kjujojp(l:l7touynrjljelnlkmmljqjllljl$lbkl3msUml]mjq`Rk,om1k|[kl8lljzkrkulmj!jl/:hkvj+<tkojp&ojtjnj**r"
     "tp)lo#{Ek8knj$jrszyoqmkm&lpljnmnj!jxkllykujsookm&lplklklk<mlj%l!rlll&lplklnnj$jzk*jvqmkm&lplklnnj;kllzj#jlon"
     "llmnkljlknknlnu)j8kqlll(lynj-lmjmk;joqlll(lslnnj<klkzk#rlll`mj!jplsl+op!n)lrljmpEk2klkwpEkkljlnl)ljlslktjmnl"
     "j(m=jJkql@.nQl|&j!oomnjnkrlovwj#]ljpjm|lHqlmmpljlmm`lmm<lmmpljlmmxlBklmmLk^y!ekmonYwmzl+pTkntr!x#y!yvllz6k[j"
     "ojNkhkr`ljpOku:5k/mnv}o+Ak(t7kckj4l1k#qAk/xku}-@|lu@mtp|ml|mlolknjpBnKk7pmom]momqljljljl:m7klpljnllpnmmoovpl"
     "lpRljxj!vCljojmsljmoqjljljlymmpnoj#`PEk3oqmnkw]ljpjmAkrj!(tplplplplplplplpBvl,rrnmnoekonliklmp|l3l#;4kyIuLBm"
     "KkGgtNk0kmhonyuk&1k!:mYk`rmClmLkmkljlq(ylllml(:6ky4kIkonjlkv-u(,.r1k/j!nlsunl`*llq&(njn4kljnkmnmjlj+lmtrlwom"
     "omotplpl|lwqOl:BNow(o3kc7n5rmFl_pwnpjlslvlnljlklklHl>2r$Ikm8k{uRlnlil]+q+vhknomomoml[ul+l#lklxmw@WlPk7kho.n3"
     "k3k;x/p]u/m@oqln}Mm$@o@o_s6kwtlxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm(u(t:Lk#lku&u+QkAkqkKkjzmlll.}.n.[ql"
     "-.8ku&u#x!LlRkBk5kx5kx@_-t(Qo{qk!lFk.ujs&}!2k%.(w7kDkkmjx~=*-@:jmjs>njw2kym(jlj[!l*%kJkpljlmlxlsr1k_qmkm&lpl"
     "klnnj$jwn;sljmjl]lj,jlj0k7k$m&l;2k&klj5n1k|m]2k&jFk|xjRk,^p6n}RlIk<qmjmqlkl)zjlj5lqm^!jlj/ju_rj(jv0k%j$RkKn<"
     "<rl[#j5k/Nlplkl](j,olkl;yjDq#zjlvl=ZljZkL%DlKl#FnRDk6lza)#o,Yhkpgv2Hm/8_Svr:#Xk#/$2k!m<%p#Ss~WnIkdlTkpjMkvKk"
     "klj/F1msM-|sQInmlplklKpzj:lmjymsZrE6kGlpvnrrs6hldklPklkmjmkmmluljlplJklmmqlpl-lmlnljnplOqm*l*l:l*l:l*l:l*l:l"
     "*lq0{:qoboGkCm~up!j7q/$}Zt-4o/mj1uplmlklxlGnFkMkrjZ,ml,lkljmjlslmljljqjojljljlllkljmjljljljljlkljmmlplmlmljl"
     "slzpllnlzB8lE4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63l"},
    {"idsb idsbinaryoperator ", "W2pkms3uj"},
    {"idst idstrinaryoperator ", "Y2pk"},
    {"idsu idsunaryoperator ", "13pk"},
    {"inadlam ", "daGk5l"},
    {"inaegeannumbers ", "2M<Ik"},
    {"inahom ", "9C@Yk"},
    {"inalchemicalsymbols ", "NQIkbl"},
    {"inalphabeticpresentationforms ", "fW;Yk"},
    {"inanatolianhieroglyphs ", "9h`9x"},
    {"inancientgreekmusicalnotation ", "1fDkYk"},
    {"inancientgreeknumbers ", "LN<Yk"},
    {"inancientsymbols ", "BP<Ik"},
    {"inarabic ", "6>Uo"},
    {"inarabicextendeda ", "34k5l"},
    {"inarabicextendedb ", "03k2k"},
    {"inarabicextendedc ", "CA>Ik"},
    {"inarabicmathematicalalphabeticsymbols ", "EKHkUo"},
    {"inarabicpresentationformsa ", "VY;Cy"},
    {"inarabicpresentationformsb ", "L7<8m"},
    {"inarabicsupplement ", "R{2k"},
    {"inarmenian ", "N/5l"},
    {"inarrows ", "gAnLl"},
    {"inavestan ", "gX=Ik"},
    {"inbalinese ", "RImbl"},
    {"inbamum ", "f2&5l"},
    {"inbamumsupplement ", "0N0kZv"},
    {"inbassavah ", "0d0k2k"},
    {"inbatak ", "dMmIk"},
    {"inbengali ", "29kbl"},
    {"inbhaiksuki ", "Te@Ll"},
    {"inblockelements ", "FXn;"},
    {"inbopomofo ", "Y8p2k"},
    {"inbopomofoextended ", "ECp;"},
    {"inboxdrawing ", "MUnbl"},
    {"inbrahmi ", "HH>bl"},
    {"inbuginese ", "fCm;"},
    {"inbuhid ", "Cgl;"},
    {"inbyzantinemusicalsymbols ", "TTDkUo"},
    {"incarian ", "DV<Ik"},
    {"incaucasianalbanian ", "d0=Ik"},
    {"incb ",
     "f7kjcljVojcljVojVojtjuk:jSkjojmlljsjbkjmpwq9ljmrvpTkk.jljljBkwlnlkptl@tjDlmlolkmk,kol!mxjmkqjzjTyl2&m/l:k;kK"
     "kklpsjmttj1klljSlk@jTlloktjqlenkmjEkjlpljljmqqsmj4k:5km4ksol_rwk=mmoCkjlknjlnCkqmkImllvlpojqjnkJnIkVujFn<BNk"
     "l7mj7l;FvoGlkFexmls=kakk3pjnjoj,kpjHmk-!xj_q,tlj0kl4kjmmmkmj]jNkomkmkwjsj3kj7kjllmkpklj}ksjEojmjojN0tjIzy!y7"
     "rkLwj2ojFmn6]llkpm{lojVmkYvmLkn3qkZkmQkt5kmYljAkx|jmkul5kmmkrjHkl]nlqIkjwk8krljsmmj6llmmqjmjNmjnq(kDkkljljwj"
     "tjypnnNkjmoljmjllolljykfkqmllj*jbkjmoljmjlklkBojmmqklk.kfkqmjlkHljljmqCljljmmlnZorlkLojumojAmmmkoj=s{ommsjto"
     "ml2kvlk2sploljck&mplklkXlonjlklpljSkknjljXqkvk8knpl*jeSljqxZTounlMAknFkpE)jJkmbkjvk8VskQEl0km(3vnnosqmp;mEml"
     "0~9ko4ksjyj)nlxB:plzmplklnBljQmpGrjHkmEumUokHzpKlpbFknCeTr5ldlEo"},
    {"inchakma ", "3N>Yk"},
    {"incham ", "5M&5l"},
    {"incherokee ", "TLl5l"},
    {"incherokeesupplement ", "DU&Yk"},
    {"inchesssymbols ", "QhIkLl"},
    {"inchorasmian ", "RF>2k"},
    {"incjkcompatibility ", "6KpUo"},
    {"incjkcompatibilityforms ", "26<;"},
    {"incjkcompatibilityideographs ", "OL;Gu"},
    {"incjkcompatibilityideographssupplement ", "P36l3v"},
    {"incjkradicalssupplement ", "Odobl"},
    {"incjkstrokes ", "1Dp2k"},
    {"incjksymbolsandpunctuation ", "33pIk"},
    {"incjkunifiedideographs ", "XcsLGt"},
    {"incjkunifiedideographsextensiona ", "bPpLBm"},
    {"incjkunifiedideographsextensionb ", "WWJkE4&"},
    {"incjkunifiedideographsextensionc ", "YbekJ2l"},
    {"incjkunifiedideographsextensiond ", "9egkhn"},
    {"incjkunifiedideographsextensione ", "80hkFcl"},
    {"incjkunifiedideographsextensionf ", "Oc0lHVm"},
    {"incjkunifiedideographsextensiong ", "347lcJl"},
    {"incjkunifiedideographsextensionh ", "gN9l63l"},
    {"incjkunifiedideographsextensioni ", "gO4lcw"},
    {"incombiningdiacriticalmarks ", "3!Ll"},
    {"incombiningdiacriticalmarksextended ", "bGmYk"},
    {"incombiningdiacriticalmarksforsymbols ", "U6n2k"},
    {"incombiningdiacriticalmarkssupplement ", "BYmIk"},
    {"incombininghalfmarks ", "V5<y"},
    {"incommonindicnumberforms ", "aB&y"},
    {"incontrolpictures ", "aOnIk"},
    {"incoptic ", "7Sobl"},
    {"incopticepactnumbers ", "WW<;"},
    {"incountingrodnumerals ", "c3Ek;"},
    {"incuneiform ", "II[X("},
    {"incuneiformnumbersandpunctuation ", "7f[bl"},
    {"incurrencysymbols ", "R5n2k"},
    {"incypriotsyllabary ", "dG=Ik"},
    {"incyprominoan ", "gG^Ll"},
    {"incyrillic ", "Y(Uo"},
    {"incyrillicextendeda ", "iZo;"},
    {"incyrillicextendedb ", "Z0&5l"},
    {"incyrillicextendedc ", "6Rmy"},
    {"incyrillicextendedd ", "XVFk5l"},
    {"incyrillicsupplement ", "K.2k"},
    {"indevanagari ", "96kbl"},
    {"indevanagariextended ", "WF&;"},
    {"indevanagariextendeda ", "hY@5l"},
    {"indingbats ", "dfnBn"},
    {"indivesakuru ", "QN@5l"},
    {"indogra ", "eH@Yk"},
    {"indominotiles ", "YWHkLl"},
    {"induployan ", "d5BkOm"},
    {"inearlydynasticcuneiform ", "0i[Rn"},
    {"inegyptianhieroglyphformatcontrols ", "Bh^2k"},
    {"inegyptianhieroglyphs ", "JJ^a)"},
    {"inegyptianhieroglyphsextendeda ", "Ei^dhk"},
    {"inelbasan ", "ai<2k"},
    {"inelymaic ", "UG>;"},
    {"inemoticons ", "bKIkYk"},
    {"inenclosedalphanumerics ", "gQnOm"},
    {"inenclosedalphanumericsupplement ", "HbHkUo"},
    {"inenclosedcjklettersandmonths ", "KEpUo"},
    {"inenclosedideographicsupplement ", "3hHkUo"},
    {"inethiopic ", "IClNr"},
    {"inethiopicextended ", "cXo5l"},
    {"inethiopicextendeda ", "aR&2k"},
    {"inethiopicextendedb ", "LUGk;"},
    {"inethiopicsupplement ", "gKl;"},
    {"ingaray ", "X1>Yk"},
    {"ingeneralpunctuation ", "22nLl"},
    {"ingeometricshapes ", "2Yn5l"},
    {"ingeometricshapesextended ", "GTIkbl"},
    {"ingeorgian ", "Q4l5l"},
    {"ingeorgianextended ", "MRm2k"},
    {"ingeorgiansupplement ", "0Vo2k"},
    {"inglagolitic ", "EPo5l"},
    {"inglagoliticsupplement ", "UUFk2k"},
    {"ingothic ", "MY<;"},
    {"ingrantha ", "KY>bl"},
    {"ingreekandcoptic ", "P$8m"},
    {"ingreekextended ", "GfmUo"},
    {"ingujarati ", "XEkbl"},
    {"ingunjalagondi ", "L3[Yk"},
    {"ingurmukhi ", "eBkbl"},
    {"ingurungkhema ", "8S~Ik"},
    {"inhalfwidthandfullwidthforms ", "UA<Eo"},
    {"inhangulcompatibilityjamo ", "b9p5l"},
    {"inhanguljamo ", "W6lUo"},
    {"inhanguljamoextendeda ", "PI&;"},
    {"inhanguljamoextendedb ", "1C-Yk"},
    {"inhangulsyllables ", "MX&NNo"},
    {"inhanifirohingya ", "E0>Ik"},
    {"inhanunoo ", "Pfl;"},
    {"inhatran ", "cL=;"},
    {"inhebrew ", "T;Ll"},
    {"inherited qaai zinh ",
     "3!Ll8pk3tt-jHzmY8l:JullvlpojqjnkJnIkUukFn<SfkmIlkMh+y!wV&j2oj23lj9X)0km(5vl#qmp;mMFYrEo"},
    {"inhighprivateusesurrogates ", "WX-bl"},
    {"inhighsurrogates ", "aD-e$"},
    {"inhiragana ", "M4p5l"},
    {"inideographicdescriptioncharacters ", "W2py"},
    {"inideographicsymbolsandpunctuation ", "aM1k;"},
    {"inimperialaramaic ", "DI=;"},
    {"inindicsiyaqnumbers ", "JBHkYk"},
    {"ininscriptionalpahlavi ", "3a=;"},
    {"ininscriptionalparthian ", "GZ=;"},
    {"inipaextensions ", "7w5l"},
    {"initialpunctuation pi ", "amjZhmjmkmj,jJXkjljojmjzjnj"},
    {"injavanese ", "CJ&5l"},
    {"inkaithi ", "AK>Yk"},
    {"inkaktoviknumerals ", "D0Ek;"},
    {"inkanaextendeda ", "DX9k2k"},
    {"inkanaextendedb ", "BR9ky"},
    {"inkanasupplement ", "RR9kUo"},
    {"inkanbun ", "hBpy"},
    {"inkangxiradicals ", "Hgohn"},
    {"inkannada ", "5Qkbl"},
    {"inkatakana ", "S6p5l"},
    {"inkatakanaphoneticextensions ", "4Epy"},
    {"inkawi ", "WC[5l"},
    {"inkayahli ", "JG&2k"},
    {"inkharoshthi ", "BS=5l"},
    {"inkhitansmallscript ", "5g4kGu"},
    {"inkhmer ", "Vhlbl"},
    {"inkhmersymbols ", "9Cm;"},
    {"inkhojki ", "YS>Yk"},
    {"inkhudawadi ", "UW>Yk"},
    {"inkiratrai ", "d71kIk"},
    {"inlao ", "Mbkbl"},
    {"inlatin1supplement ", "clbl"},
    {"inlatinextendeda ", "Vobl"},
    {"inlatinextendedadditional ", "UZmUo"},
    {"inlatinextendedb ", "OrRn"},
    {"inlatinextendedc ", "KRo;"},
    {"inlatinextendedd ", "Y5&hn"},
    {"inlatinextendede ", "dS&Ik"},
    {"inlatinextendedf ", "1E=Ik"},
    {"inlatinextendedg ", "iOFkUo"},
    {"inlepcha ", "DOmYk"},
    {"inletterlikesymbols ", "X7nYk"},
    {"inlimbu ", "A7mYk"},
    {"inlineara ", "M5=Nr"},
    {"inlinearbideograms ", "9J<bl"},
    {"inlinearbsyllabary ", "GG<bl"},
    {"inlisu ", "Rb%2k"},
    {"inlisusupplement ", "SG[y"},
    {"inlowsurrogates ", "Pa-X("},
    {"inlycian ", "QU<;"},
    {"inlydian ", "CN=;"},
    {"inmahajani ", "cO>2k"},
    {"inmahjongtiles ", "VVHk2k"},
    {"inmakasar ", "0C[;"},
    {"inmalayalam ", "hSkbl"},
    {"inmandaic ", "g1k;"},
    {"inmanichaean ", "NW=Ik"},
    {"inmarchen ", "6h@Yk"},
    {"inmasaramgondi ", "F1[5l"},
    {"inmathematicalalphanumericsymbols ", "I7EkX("},
    {"inmathematicaloperators ", "JDnUo"},
    {"inmayannumerals ", "01Ek;"},
    {"inmedefaidrin ", "PD1k5l"},
    {"inmeeteimayek ", "3W&Ik"},
    {"inmeeteimayekextensions ", "4R&;"},
    {"inmendekikakui ", "8VGkhn"},
    {"inmeroiticcursive ", "5Q=5l"},
    {"inmeroitichieroglyphs mero meroitichieroglyphs ", "IP=;"},
    {"inmiao ", "bH1kOm"},
    {"inmiscellaneousmathematicalsymbolsa ", "61o2k"},
    {"inmiscellaneousmathematicalsymbolsb ", "4Bobl"},
    {"inmiscellaneoussymbols ", "8anUo"},
    {"inmiscellaneoussymbolsandarrows ", "SJoUo"},
    {"inmiscellaneoussymbolsandpictographs ", "Y3Ik2!"},
    {"inmiscellaneoustechnical ", "5JnUo"},
    {"inmodi ", "N6@5l"},
    {"inmodifiertoneletters ", "25&;"},
    {"inmongolian ", "O1mem"},
    {"inmongoliansupplement ", "T8@;"},
    {"inmro ", "aZ0k2k"},
    {"inmultani ", "RV>2k"},
    {"inmusicalsymbols ", "FZDkUo"},
    {"inmyanmar ", "11lOm"},
    {"inmyanmarextendeda ", "BO&;"},
    {"inmyanmarextendedb ", "IL&;"},
    {"inmyanmarextendedc ", "6B@2k"},
    {"innabataean ", "WJ=2k"},
    {"innagmundari ", "2DGk2k"},
    {"innandinagari ", "6R@5l"},
    {"innewa ", "6e>bl"},
    {"innewtailue ", "3Am5l"},
    {"innko ", "4~Ik"},
    {"innoblock ",
     "G2py2P,blcq;G&Ikgm2k7lIkJp;GoYkak2k3pRnJ(2kOwOmFtemakYkDnIkis5lWoIkgmXpdlYk1<DDkNelXFmKkH^D%QsKkBn7l5lQmIkPX"
     "meFnK!86kgm4gkUyIkTn2k8wLlDnbl3^N*frLlak4qNlDt4kRn4kTtWo;7lI!akIkakemWoUoDNkX(G4&;31sX9k5vI=2NndLaqdlblGoE5<"},
    {"innumberforms ", "N9nIk"},
    {"innushu ", "ZZ9kdr"},
    {"innyiakengpuachuehmong ", "GaFkYk"},
    {"inogham ", "0cl;"},
    {"inolchiki olchiki olck ", "3Qm2k"},
    {"inoldhungarian ", "Lg=bl"},
    {"inolditalic ", "JX<2k"},
    {"inoldnortharabian narb oldnortharabian ", "4V=;"},
    {"inoldpermic ", "9Z<2k"},
    {"inoldpersian ", "ia<Ik"},
    {"inoldsogdian ", "VB>2k"},
    {"inoldsoutharabian oldsoutharabian sarb ", "HU=;"},
    {"inoldturkic ", "Sd=Yk"},
    {"inolduyghur ", "8E>Ik"},
    {"inolonal ", "XIGk2k"},
    {"inopticalcharacterrecognition ", "AQn;"},
    {"inoriya ", "QHkbl"},
    {"inornamentaldingbats ", "RMIk2k"},
    {"inosage ", "1h<Yk"},
    {"inosmanya ", "hf<2k"},
    {"inottomansiyaqnumbers ", "SEHkYk"},
    {"inpahawhhmong ", "3e0k8m"},
    {"inpalmyrene palm palmyrene ", "0J=;"},
    {"inpaucinhau ", "OX@Ik"},
    {"inphagspa ", "7C&Ik"},
    {"inphaistosdisc ", "UQ<2k"},
    {"inphoenician ", "PM=;"},
    {"inphoneticextensions ", "iTmbl"},
    {"inphoneticextensionssupplement ", "bWmIk"},
    {"inplayingcards ", "BZHk5l"},
    {"inprivateusearea ", "EE.97m"},
    {"inpsalterpahlavi ", "Za=2k"},
    {"inrejang ", "MH&2k"},
    {"inruminumeralsymbols ", "68>;"},
    {"inrunic ", "Wcl5l"},
    {"insamaritan ", "N0kIk"},
    {"insaurashtra ", "QD&5l"},
    {"inscriptionalpahlavi phli ", "3a=#pq"},
    {"inscriptionalparthian prti ", "GZ=&mq"},
    {"insharada sharada shrd ", "fP>5l"},
    {"inshavian shavian shaw ", "ee<2k"},
    {"inshorthandformatcontrols ", "J9Bky"},
    {"insiddham ", "U3@bl"},
    {"insinhala ", "aVkbl"},
    {"insinhalaarchaicnumbers ", "2S>;"},
    {"insmallformvariants ", "Y6<;"},
    {"insmallkanaextension ", "GY9kIk"},
    {"insogdian ", "YC>Ik"},
    {"insorasompeng ", "0M>2k"},
    {"insoyombo ", "2V@5l"},
    {"inspacingmodifierletters ", "DyYk"},
    {"inspecials ", "0G<y"},
    {"insundanese ", "KLmIk"},
    {"insundanesesupplement ", "PSmy"},
    {"insunuwar ", "Ad@Ik"},
    {"insuperscriptsandsubscripts ", "O4n2k"},
    {"insupplementalarrowsa ", "92oy"},
    {"insupplementalarrowsb ", "B8obl"},
    {"insupplementalarrowsc ", "9WIkUo"},
    {"insupplementalmathematicaloperators ", "gDoUo"},
    {"insupplementalpunctuation ", "Vaobl"},
    {"insupplementalsymbolsandpictographs ", "ebIkUo"},
    {"insupplementaryprivateuseareaa ", "FKZtFG<"},
    {"insupplementaryprivateuseareab ", "VaMuFG<"},
    {"insuttonsignwriting ", "7UEkCy"},
    {"insylotinagri ", "XA&2k"},
    {"insymbolsandpictographsextendeda ", "31Jk8m"},
    {"insymbolsforlegacycomputing ", "C4JkUo"},
    {"insymbolsforlegacycomputingsupplement ", "e6DkSy"},
    {"insyriac ", "b_Yk"},
    {"insyriacsupplement ", "T2ky"},
    {"intagalog ", "cel;"},
    {"intagbanwa ", "igl;"},
    {"intags ", "i33tbl"},
    {"intaile ", "09m2k"},
    {"intaitham ", "SDm8m"},
    {"intaiviet ", "hO&5l"},
    {"intaixuanjingsymbols ", "W1Ek5l"},
    {"intakri ", "G9@Yk"},
    {"intamil ", "JKkbl"},
    {"intamilsupplement ", "iG[Ik"},
    {"intangsa ", "da0k5l"},
    {"intangut ", "NN1kN1m"},
    {"intangutcomponents ", "2P4k2!"},
    {"intangutsupplement ", "M85kbl"},
    {"intelugu ", "CNkbl"},
    {"inthaana ", "U|Ik"},
    {"inthai ", "TYkbl"},
    {"intibetan ", "FekUo"},
    {"intifinagh ", "3WoYk"},
    {"intirhuta ", "ig>5l"},
    {"intodhri ", "34=Ik"},
    {"intoto ", "B0Gk2k"},
    {"intransportandmapsymbols ", "UNIkbl"},
    {"intulutigalari ", "Db>bl"},
    {"inugaritic ", "Ca<;"},
    {"inunifiedcanadianaboriginalsyllabics ", "ZNl9x"},
    {"inunifiedcanadianaboriginalsyllabicsextended ", "K5mYk"},
    {"inunifiedcanadianaboriginalsyllabicsextendeda ", "8X@y"},
    {"invai ", "Uc%4q"},
    {"invariationselectors ", "i4<y"},
    {"invariationselectorssupplement ", "U93tEo"},
    {"invedicextensions ", "fSm2k"},
    {"inverticalforms ", "F5<y"},
    {"invithkuqi ", "D2=Yk"},
    {"inwancho ", "E1GkIk"},
    {"inwarangciti ", "KL@5l"},
    {"inyezidi ", "c8>Ik"},
    {"inyijinghexagramsymbols ", "EbsIk"},
    {"inyiradicals ", "8a%Ik"},
    {"inyisyllables ", "AA%g+"},
    {"inzanabazarsquare ", "CT@Yk"},
    {"inznamennymusicalnotation ", "hNDkRn"},
    {"ital olditalic ", "JX<@tl"},
    {"java javanese ", "CJ&Wkmsok"},
    {"joinc joincontrol ", "E2nk"},
    {"kaithi kthi ", "AK>Lkuj"},
    {"kali kayahli ", "JG&0klj"},
    {"kana katakana ", "T6pikmlGoyTn1klgkdZ+sl~4D(mlplkljIpl6kjym"},
    {"kannada knda ", "5Qkvlll(lslnmrlllmrkqklmmsll"},
    {"kawi ", "WC[zl`n."},
    {"khar kharoshthi ", "BS=mlkpqlll.mlosrr"},
    {"khitansmallscript kits ", "eM1kjAJmJt|j"},
    {"khmer khmr ", "Vhl3lmsqsbt;"},
    {"khoj khojki ", "YS>!l1k"},
    {"khudawadi sind ", "UW>Dkps"},
    {"kiratrai krai ", "d71kCk"},
    {"l letter ",
     "Kk+q+3kjujojp(l:l7touynrjljelnlkmmljqjllljl$lbkl3msUml]mjq`Rk,om1k|[kl8lljzkrkulmj!jl/:hkvj+<tkojp&ojtjnj**r"
     "tp)lo#{Ek8knj$jrszyoqmkm&lpljnmnj!jxkllykujsookm&lplklklk<mlj%l!rlll&lplklnnj$jzk*jvqmkm&lplklnnj;kllzj#jlon"
     "llmnkljlknknlnu)j8kqlll(lynj-lmjmk;joqlll(lslnnj<klkzk#rlll`mj!jplsl+op!n)lrljmpEk2klkwpEkkljlnl)ljlslktjmnl"
     "j(m=jJkql@.nQl|&j!oomnjnkrlovwj#]ljpjm|lHqlmmpljlmm`lmm<lmmpljlmmxlBklmmLk^y!ekmonYwmzl+pTkqqr!x#y!yvllz6k[j"
     "ojNkhkrnm=ljpOku:5k/mnv}o+Ak(t7kckj4l1k#qAk/xku}-@|lu@mtp|ml|mlolknjpBnKk7pmom]momqljljljl:m7klpljnllpnmmoov"
     "pllpRljxj!vCljojmsljnnqjljljlmltmmpnoj8kkTEk3oqmnkw]ljpjmAkrj!(tplplplplplplplpakjKtk}npkoekqlliklmp|l3l#;4k"
     "yIuLBmKkGgtNk0kmhonyuk&1k!:mOk5krmClmLkmkljlq(ylllml(:6ky4kIkonjlkv-u(,.r1k/j!nlsunl`*llq&(njn4kljnkmnmjlj+l"
     "mtrlwomomotplpl|lwqOl:BNow(o3kc7n5rmFl_pwnpjlslvlnljlklklHl>2r$Ikm8k{uRlnlil]+q+vhknomomoml[ul+l#lklxmw@WlUr"
     ".n3k3k;x$lqq]u/m@oq4kMm$@o@o_s6kwtlxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm(u(t:Lk#lku&u+QkAkqkKkjzmlll.}.n"
     ".[ql-.8ku&u#x!LlRkBk5kx5kx@_-t(Qo{qk!lFk.ujs&}!2k%.(w7kDkkmjx~=*-@:jmjs>njw2kym(jlj[!l*%kJkpljlmlxlsr1k_qmkm"
     "&lplklnnj$jwn;sljmjl]lj,jlj0k7k$m&l;2k&klj5n1k|m]2k&jFk|xjRk,^p6n}RlIk<qmjmqlkl)zjlj5lqm^!jlj/ju_rj(jv0k%j$R"
     "kKn<<rl[#j5k/Nlplkl](j,olkl;yjDq#zjlvl=ZljZkL%6oFnRDk6lza)#o,Yhkpgv2Hm/8_Svr:#Xk#/$2k!m<%p#Ss~WnIkdlTkpjMkvK"
     "kklj/F1msM-|sQInmlplklKpzj:lmjymsZrE6kGlpvnrrs6hldklPklkmjmkmmluljlplJklmmqlpl-lmlnljnplOqm*l*l:l*l:l*l:l*l:"
     "l*lq0{:qoboGkCm~up!j7q/$}Zt-4o/mj1uplmlklxlGnFkMkrjZ,ml,lkljmjlslmljljqjojljljlllkljmjljljljljlkljmmlplmlmlj"
     "lslzpllnlzB8lE4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63l"},
    {"lana taitham ", "SDmHkl.mtqsqw"},
    {"lao laoo ", "Nbkkljlnl)ljl(mnljlplsmm"},
    {"latin latn ",
     "Kk+q+3kjzjp(l:lhs`nODm]q3kpmpvlOkLkUoArjxj!v7mkqj.j#`VGk;UMyBlnLkmkljlq(w7#|lrlmZ2tpG)+q+G1kol{lrU9-:qo"},
    {"lepc lepcha ", "DOmAknxnl"},
    {"letternumber nl ", "KellHEk>mmLbkj,ryl50ysaIu7kBtjsj0mn03nKl"},
    {"limb limbu ", "A7m:luouojnu"},
    {"lina lineara ", "M5=ept&uq"},
    {"linb linearb ", "GG<ul+l#lklxmw@Wl"},
    {"lineseparator zl ", "g2nj"},
    {"lisu ", "Rb%2kiMyj"},
    {"ll lowercaseletter ",
     "7l+Ekj|)lqljljljljljljljljljljljljljljljljljljljljljljljljljljljlkljljljljljljljlkljljljljljljljljljljljljlj"
     "ljljljljljljljljljljmjljllmjljmjnkojmjnlmjmjljljmjlkljmjnjljmkmlqjmjmjljljljljljljljlkljljljljljljljljlkmjlj"
     "njljljljljljljljljljljljljljljljljljljljljljljljljljljljljlpmjmkljojljljljlNkl,Enjljnjnl$j.>lknlljljljljljlj"
     "ljljljljljlnljmjmk7k2kljljljljljljljljljljljljljljljljljtjljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljmjljljljljljlkljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljlj4k`8Jk|mlfzoJ3krljSl}Jkvl=Dljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlrljljljljljljljljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlrsouqsqsouqsqswmqsqsqsnlkqjnllksmmksqullk5pjnk"
     "nj.jojojmksmoj9kjWFk2kljnkljljljojlklopjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljlkrjljojw]ljpjaDyjljljljljljljljljljljljljljljljljljljljljljlj%jljljljljljljljlj"
     "ljljljljlj1mjljljljljljllljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlqljljmjljljljljojljm"
     "jllljljljljljljljljljljpjpjljljljljljljljojljmjnjljljljljlj-jnjC#|prrYkd0tpwnV)+F-_2m@Lmtlxlplkf_5kal&eIk;Ja"
     "t;1cv+-pl!-+-mljlplt-+-+-+-+-+-+-+-+--/*lo-*lo-*lo-*lo-*lolj0{sl$qoWBk="},
    {"lm modifierletter ",
     "Dy!ouynrjljiljpjTtj6ojUmk0pkoj<jtjnjQmjXmjM-jcljQvj0_jIljRwjFtoemHkxj@[Fyjxj!vPMkkHojCnjKtj~npj8lk4lli1xja-o"
     "1pjPlj/kWlrakj*jGllnkKtj)j3mjJlj(kElmtj1Stj1kkb~ol{lrX;j=jWcumEul{kBvvKkkljH4rmlplk84pGkMnpg%je*j"},
    {"lo otherletter ",
     "ZmjzjWojomTnjI#,om1k;ls[kl8llj+kulmj!jl/:hkvj+<(&}*rtp)lo#`Fk8knj$jrs!xoqmkm&lpljnmnj!jxkllykujsookm&lplklkl"
     "k<mlj%l!rlll&lplklnnj$jzk*jvqmkm&lplklnnj;kllzj#jlonllmnkljlknknlnu)j8kqlll(lynj-lmjmk;joqlll(lslnnj<klkzk#r"
     "lll`mj!jplsl+op!n)lrljmpEk2klkwoFkkljlnl)ljlslktjmn*m=jJkql@.nQl|&j!oomnjnkrlovwjOlDqlmmpljlmm`lmm<lmmpljlmm"
     "xlBklmmLk^yOlYwmzl+pTkqqr!x#y!yvllz6k{jNk>l7krnm=ljpOku:5k/mnv}o+Ak(t7kgm1k#qAk/xku}-@|lu/Olmlolknj3*m4NkAk+"
     "(tplplplplplplplpCvj9kjoeksjlikojp|l3l#;4kyIuLBmKkgGtlH+Nk_sgooyukMkj5kOkZmjEljnplllml(:6ky4kIkonjlkv-u(,.r1"
     "k1knmrunl`*llq&ylonjn4kljnkmnmjlj+kntrjyomomotplpBm>:BNow(o3kc7n5rmFlNkjlslvlnljlklklHl>2r$Ikm8k{uRlnlilGlsl"
     "~m:nomomoml[ul+l#lklxmw@WlUr.n3k3k;x$lqq]u/m@oqdlWk9l_s6k3l6kwept&uqImomjl}lknjm(u(t:Lk#lku&u+QkAkqkKkjzmlll"
     ".}.n.[ql-.8ku&u#x!LlRk4n@_mljZp{qk!lFk.ujs&}!2k%.(w7kDkkmjx~=*-@:jmjs>njw2kym(jlj[!l*%kJkpljlmlxlsr1k_qmkm&l"
     "plklnnj$jwn;sljmjl]lj,jlj0k7k$m&l;2k&klj5n1k|m]2k&jFk|xjRk,^p6n}Wnqmjmqlkl)zjlj5lqm^!jlj/ju_rj(jv0k%j$RkKn<<"
     "rl[#j5k/Nlplkl](j,olkl;yjDq#zjlvl=ZljZkL%6oFnRDk6lza)#o,Yhkpgv2Hm/8_Svr:#Xk#/$2k7k%p#Vs_1sTkpjfmF1msM-|sgInK"
     "pzj:lmjymsZrE6kGlpvnrrsgFnj7u~>j7q/$}Zt,5o/mj1uplmlklxlGnZ/ml,lkljmjlslmljljqjojljljlllkljmjljljljljlkljmmlp"
     "lmlmljlslzpllnlzB8lE4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63l"},
    {"loe logicalorderexception ", "3aknYlnBHklmjZE#kmjlk"},
    {"lower lowercase ",
     "7l+3kjujoj])lqljljljljljljljljljljljljljljljljljljljljljljljljljljljlkljljljljljljljlkljljljljljljljljljljlj"
     "ljljljljljljljljljljljljmjljllmjljmjnkojmjnlmjmjljljmjlkljmjnjljmkmlqjmjmjljljljljljljljlkljljljljljljljljlk"
     "mjljnjljljljljljljljljljljljljljljljljljljljljljljljljljljljljlpmjmkljojljljljlNkl@rk;n7lj~jljnjmm$j.>lknllj"
     "ljljljljljljljljljljlnljmjmk7k2kljljljljljljljljljljljljljljljljljtjljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljmjljljljljljlkljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljlj4k`8Jk|lmfzoJ3krljSlBnLkjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlrljljljljljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlrsouqsqsouqsqswmqsqsqsnlkqjnllksmmksqull"
     "kWljxj!vKljnknj.jojojmksmoj>yojY#+I{2kljnkljljljojlklqnjljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljlkrjljojw]ljpjaDyjljljljljljljljljljljljljljljljljljljljljljlj%j"
     "ljljljljljljljljljljljljlliljljljljljljllljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlsljljm"
     "jljljljljojljmjllljljljljljljljljljljpjpjljljljljljljljojljmjnjljljljljlj)lljllC#|lwqYkd0tpwnV)+F-_2m@Lmtlxl"
     "plk2tjmll{lrQ.5kal&eIk;Jat;1cv+-pl!-+-mljlplt-+-+-+-+-+-+-+-+--/*lo-*lo-*lo-*lo-*lolj0{sl$qoboGkO4k="},
    {"lt titlecaseletter ", "3tjmjmj_jEXmqsqsqwjzj3kj"},
    {"lu uppercaseletter ",
     "Kk+Cl(lp>jljljljljljljljljljljljljljljljljljljljljljljljljljljljmjljljljljljljljmjljljljljljljljljljljljljlj"
     "ljljljljljljljljljlkljljnkljlkllmmlkllnklkljljlkljmjlkllljlknjrjmjmjmjljljljljljljljmjljljljljljljljljmjmjll"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljrklkmjlmljljljljKpjljnjsjqjllljlklzlr[jmlnjljljljl"
     "jljljljljljljljpjmjlkm5k4kjljljljljljljljljljljljljljljljljtjljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljlkljljljljljljmjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljljm]AJk]ljpj3zeka3kjq|ml6qjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljtjljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljtqsouqsqsovjljljljsqSkmwmwmwnvmcojojnlmlmjnnqj"
     "ljljlmmmukpjHkjUEk2k4kjllmjljljlmljmjslljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljsjljoj4Fyjljljljljljljljljljljljljljljljljljljljljljlj%jljljljljljljljljljljljl"
     "jlj1mjljljljljljljnjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljujljlkljljljljojljmjljnjljlj"
     "ljljljljljljljlnlnljljljljljljljlmljlknjpjljljlj+jf0u+7-_2m@MmtlxlplkG_5kNm&eIk;Jat;7cv+-+-+-jlkmjmkmmlq-+-k"
     "lmmqlp.klmlnljnp.+-+-+-+-+-+;*>*>*>*>*>jf7l="},
    {"lyci lycian ", "QU<."},
    {"lydi lydian ", "CN=+pj"},
    {"mahajani mahj ", "cO>^"},
    {"maka makasar ", "0C[*"},
    {"malayalam mlym ", "hSkvlll5klllooym+"},
    {"mand mandaic ", "g1k-mj"},
    {"mani manichaean ", "NW=^ou"},
    {"marc marchen ", "6h@;m&lw"},
    {"math ",
     "}j!l<j:jlj1kjoj^j<j9zlmj-kmlXulADmj.lvjnjxjym(nvnLkvojnkon$jojmsljmoqjnkmklllonwljOk)lolkoko;ljqkygosm&k1lj;"
     ",lj+jvpfskwsoookmknnyjljmovqpkDkjlj:mtlMqIkWoGu4k%moNC,jE#oljSmj!l:jlj:jljgljqmPWkkf3+dklPklkmjmkmmluljlplJk"
     "lmmqlpl-lmlnljnplOqmLpm4k8Zlml,lkljmjlslmljljqjojljljlllkljmjljljljljlkljmmlplmlmljlslzpllnlz8kk"},
    {"mathsymbol sm ",
     "}j!lHkjlj1kjoj^j<j2!jXulBEmjxj`lxl5mj`nqjOknpkojmjmjrj<kmjlj<go=k1lj;*{oKtjtjAkqMljMqnm:uyWoel)Hko;mWo4k%moN"
     "C,jF#jllUmj!lHkjljgljqmPWkkQJ+j,j<j,j<j,j<j,j<j,jcflk"},
    {"mc spacingmark ",
     "C6kjBkjmlsmlk6kkEklqkmkuj~jEklMkjEklsjlk9kkEkjljqkmkujDlklknllluj|lHkmHkkEkjlnmklktk/jykEklpllluj}kVklqq$kGq"
     "kJkjbmkojqjmk,kulmp(kmomjulb[j;jeljrqlkWqmmloklo0okEkjljtjlksoBmj4kjpjlnlkHkj;jokmjGkjmlljnk4kqskbmj(jEJlkI7"
     "ykmjikk6ky8mk3kj4kkokmlLlkmk+j1kjljKljmkpjDoklklkljFTvjljclj1klokQlj+kFkj4kltkxj4llnkljaml<kEkklmmkmltjukekl"
     "rjmjlmlkljCllsknjHllqjlmmjDolqmmjOllskljKljlkqjEljlkojboltjNoolkojmjlj8mlsmojekj:kIkj3sjyjHljrjmjYnnokljaqkw"
     "j4kkskljhErlLZk9kFlkIEvkqo"},
    {"mcm modifiercombiningmark ", "0[kmjgljqjnkWtkllnj<j"},
    {"medefaidrin medf ", "PD1k0l"},
    {"meeteimayek mtei ", "4R&(Mn0kms"},
    {"mend mendekikakui ", "8VGkGnmy"},
    {"merc meroiticcursive ", "5Q=)o$m0k"},
    {"miao plrd ", "bH1kTkoBkrz"},
    {"mn nonspacingmark ",
     "3!Ll6pnfo~ljlklkljSkt4k%!jClpmomklm[j;,2ltEkrtj+mlrllln~lFkr})l;Bkjljoqojnpuk:jEkjomsj&k-jmkDkjokokmlnj;knjv"
     "kDkjonlkoj&k)oljEkjmjlmsjrkvk;jHkjwj6kjnjBkjllpllmrkvk:jEkjmjqjpk&k/kDkkomsj&k:jSkjrllj1ljmpwq9ljmrvpTkk.jlj"
     "ljBkwlnlkptl@tjDlmlolkmk,kol!mxjmkqjzjTyl2&l:k;k;kKkklpsjmttj1klljSlk@jTlloktjqlenkmjEkjlpljljmqqsmj4kwly5km"
     "4kjlnljpj{rwk=mmkllCkjlknjllEkqmkImllvlpojqjnkJnIk1zvojnuBNkl7mj7l;FvmIlkFexjos=kakk3pjnjoj,kpjHmk-!xj_q,t2k"
     "l4kjmmmk`jNkomkmkwjsj3kj7kjllmkpklj}ksjEojmjojN0tjIzy!yT&j2ojFmn6]llkpm{lojVmkYvmLkn3qkZkmQkt5kmYljAkx|jmkul"
     "5kmmkrjHkl]nlqIkjwk8krummj6llmjlkqjmjNmjnq(kDkknj^pnnQkoxjljljykfkqmllj*jekoljoklkEomqklk.kfkqmjlkHljljmoljC"
     "ljljmmlnZorlkWokljojAmmmkoj=s{ommsjtoml2kvlk2sploljck&mplklkXlonjlklpljSkknjljXqkvk8knpjlj*jeSljqxZTounlMAkn"
     "FkpE)jJkmbkjLVskQEl0km(5vl#qmp;mEml0~9ko4ksjyj)nlxB:plzmplklnBljQmpGrjHkmEumUokHzpKlp7GVrEo"},
    {"modi ", "N6@Nkvs"},
    {"modifiersymbol sk ", "4ljljRkjqjojnjRumwwppljlzSljykN.j1gljllvlxlxlxkN4lkNhx(tkElkW&jykV6tzb$jljSmjSc:n"},
    {"mong mongolian ", "O1mkmjl$qhkr|F3<v"},
    {"mro mroo ", "aZ0k:lsok"},
    {"mult multani ", "RV>pljlmlxlt"},
    {"myanmar mymr ", "11lOmcG$:8l;9Vw$"},
    {"n number ",
     "3ksVlkpjml2<s0msJns8ssTlsooJlsTlsTlsmoLlvQlsspElsFlpr#Kls7lsTlsQk$iosQks0z$R$lFosqs)sVpsdltVmsqs3nsgks0msqsC"
     ")jnoqsJn5kmn7zEkYk&1x/a:jD!j,rylTqm4ms;qlx=s`xHQxs9ns6qoKms_sJns)sgks2ssVMtsit~wBk#kRq,]m:jsj0mnNnsh%q,p`rVk"
     "n)oQmkmym0kKkr8kk;lVknFlq+q|pGqo4ksqs9p:Oms}mNlp0m/dlsGksAmsr$RosSqsTlsFrsDlsq$WkuGs#4lsXxsgk.3osQksIssDl%X)"
     "KlTUqs37ksgks0mslpWusco(Yfusd<$w$Jl*U*4kT7ksIss8usNosgyrdlsR!DklllmWk~lxI&vhGks"},
    {"nabataean nbat ", "WJ=:sr"},
    {"nagm nagmundari ", "2DGk{"},
    {"nand nandinagari ", "6R@qm0kmt"},
    {"nchar noncharactercodepoint ", "f3<;WukFG<kFG<kFG<kFG<kFG<kFG<kFG<kFG<kFG<kFG<kFG<kFG<kFG<kFG<kFG<kFG<k"},
    {"newa ", "6e>1lln"},
    {"newline ", "tj"},
    {"newtailue talu ", "3Am}o+qtnk"},
    {"nko nkoo ", "4~Dkml"},
    {"no othernumber ",
     "hmkpjmlI7koHroVllilpcnp#rTssh)$F+sVtjL]jnoqsJny|j7zEkYk&1x/a:j3,m4ms;qlx=s`x5cxoDAu~Lkm#kRq,]mS/q,p`rVkn)oQm"
     "kmym0kKkr8kk;lVknFlq+q|pGqocq:Oms}mNlp0m$Kr$0:kQsrH$#g#%UOspY!(bTv$w$Jl*AVlrU%DklllmWk~lxI&v"},
    {"nshu nushu ", "bM1kjhCrZr"},
    {"oalpha otheralphabetic ",
     "R#j:vbvwljlklkljSkt4kvlp!jClpommkoj[j;yDltClknrlllmHljGkunpq$Akkmxlkpluk:lEkpmkmkujuk:lEknokmkoj;knjvlEkqlll"
     "k(k)lolEkpmkmktkuk;jFknnllluj{nDkpllllskvk:lEkpllllskvkzjwmEkpllllujuk:lVkoljlq$kHkjmp$jAljmolk!jTm#ttl@Llul"
     "jmm*molllmpnmxuljumX[k;k;k;kMk#9nk@jTluorhnnDksm$Ukkvl5kn4kxGkl;rmkDkt6k#8s=K^6k06k;CAyq@keqjsj*nikk6kyljDkj"
     "_n/u1km4ku^jNkwwjsk1kl6kjllmkpj0knpjDoqQ0tjL2kn6]llkpmO!mLkj7qkZkjZol9kw1kkvl1krtjHkl]u$kDkl4kvyk3lrmjqjmjNm"
     "s*mEkpmkmkujukekrljmjlmlkElvllHl!Dopmp:kckxljHltElwXovNoolkmknjlj8mpmooj/s}nlm$t2kw3sqlpdk&lwXlonjlkllljnjMk"
     "nlklmYqmtklj4kpnlWErzHZkjl9krm4lk9VsjDLnplzmplklnBljR4kj00k+q+q+"},
};
const size_t kNumUnicodeSets3 = 416;

}  // namespace kintsugi::text
// clang-format on
